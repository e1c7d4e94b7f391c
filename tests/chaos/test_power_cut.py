"""The power goes at every step of every operation, and the disk loses any part of what was not synced: the next start finds every machine at a snapshot
that was told, or at a later one, with every number up to it once and in order; every named point; and no number is given twice. What was told to be done, is: a sleep, a way back, a new machine, a deletion.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import pytest

from everforge.store.sql.store import SqlStore
from everforge.wire.errors import MachineNotFound
from everforge.wire.events import Lost
from everforge.wire.ids import OWNER
from kit.house import IN_MEMORY, House
from kit.length import TIMEOUT_FACTOR, length
from kit.powercut import DATABASE, Everything, PowerCut, Synced
from kit.walks import NAME, WALKS, Journal, is_part_of, prepare, value_of

LOSSES = length(1, 40)  # drawn for each step, besides the worst


@pytest.fixture
def in_memory() -> Iterator[Path]:
    """Many copies of small things: on a disk they would take minutes."""
    with tempfile.TemporaryDirectory(prefix="everforge-power-", dir=IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None) as folder:
        yield Path(folder)


@dataclass
class Moment:
    """What its owner had been told when the power went."""

    step: str
    cut: PowerCut
    told: Journal
    next_instruction: int

    @property
    def surely(self) -> list[int]:
        """In the newest snapshot that was told."""
        return max([*self.told.points.values(), self.told.kept], key=len)


class Recorder:
    """Cuts the power at every step: of a copy, so that the walk goes on."""

    def __init__(self, walk: str, place: Path) -> None:
        self.walk = walk
        self.place = place
        self.moments: list[Moment] = []
        self.synced, self.journal = Synced(), Journal()

    async def run(self) -> None:
        with self.synced.watching():
            house = House(store=await SqlStore.open(self.place / DATABASE, boot_id="one"))
            await house.start()
            await prepare(house.machines, self.journal)
            listen = house.life.listen

            def cut(step: str) -> None:
                listen(step)
                if is_part_of(self.walk, step) and step.startswith("before"):  # "after" is the same place as the next "before"
                    self._cut(house, step)

            house.life.listen = cut
            house.machines.forge.steps._listener = cut  # pyright: ignore[reportPrivateUsage]
            await WALKS[self.walk](house.machines, self.journal)
            self._cut(house, "the end")
            await house.close()
            await house.store.close()

    def _cut(self, house: House, step: str) -> None:
        cut = PowerCut.now(house.folder, self.place / DATABASE, self.synced, self.place / f"cut-{len(self.moments)}")
        keeper = house.machines.forge.keepers.named(OWNER, NAME)
        self.moments.append(Moment(step, cut, deepcopy(self.journal), keeper.dossier.record.next_instruction if keeper else 0))


async def boot(moment: Moment, journal: Journal, place: Path, draw: random.Random) -> None:
    """As the next start finds it: nothing runs, and some of the disk is gone."""
    cut = moment.cut.copy_to(place / "boot")
    lost = cut.lose(draw)
    house = House(store=await SqlStore.open(cut.database, boot_id="two"))
    shutil.copytree(cut.snapshots, house.folder, dirs_exist_ok=True)
    try:
        await house.start()
        await check(house, moment, journal)
        await house.check_nothing_leaked()
    except BaseException as e:
        raise AssertionError(f"the power went at {moment.step}, lost: {lost}: {e!r}") from e
    finally:
        await house.close()
        await house.store.close()
        shutil.rmtree(cut.folder)


async def check(house: House, moment: Moment, journal: Journal) -> None:
    for name in moment.told.made:
        await value_of(house.machines, name, "1")
    try:
        view = await house.machines.get(NAME)
    except MachineNotFound:
        assert journal.deleted, "the machine is gone, and nobody asked for that"
        return
    assert not moment.told.gone, "it was told to be deleted, and is there again"
    assert view.state != "broken", view.record.error
    await check_seen(house, moment, journal, view.state)
    for label, then in moment.told.points.items():
        await house.machines.rollback(NAME, snapshot=label)
        assert (await house.machines.run(NAME, "seen")).value == repr(then), label


async def check_seen(house: House, moment: Moment, journal: Journal, state: str) -> None:
    ended = await house.machines.run(NAME, "seen")
    assert ended.instruction >= moment.next_instruction, "a number was given twice"
    if journal.rolled_back and (ended.value == "[0]" or "NameError" in (ended.error or "")):
        return
    assert not moment.told.went_back, f"{ended.value}, and it had been told to be back where it was"
    assert ended.value is not None, ended
    seen: list[int] = eval(ended.value)
    assert seen == list(range(len(seen))), "twice, or out of order"
    assert len(moment.surely) <= len(seen) <= len(moment.told.sent), f"{seen}, and {moment.surely} had been told to be safe"
    told_lost = [e async for e in house.machines.read(NAME) if isinstance(e, Lost)]
    assert told_lost or seen == moment.told.sent or state == "asleep", "what is gone was not told"


@pytest.mark.timeout(120 * TIMEOUT_FACTOR)
@pytest.mark.parametrize("walk", [walk for walk in WALKS if walk != "pack"])
async def test_the_power_goes_at_every_step_of(walk: str, in_memory: Path) -> None:
    recorder = Recorder(walk, in_memory)
    await recorder.run()
    assert len(recorder.moments) >= 3
    for number, moment in enumerate(recorder.moments):
        for draw in (Everything(), *(random.Random(f"{walk} {number} {loss}") for loss in range(LOSSES))):
            await boot(moment, recorder.journal, in_memory, draw)
