"""What a guest says, and what a hostile one might."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import pytest

from everforge.engine.base import Ending, Sandbox
from everforge.engine.fake import FakeSandbox
from everforge.machines.dossier import Dossier
from everforge.machines.guestline import GuestLine
from everforge.machines.incarnation import Incarnation
from everforge.machines.steps import Steps
from everforge.machines.tape import TapeReaders
from everforge.signals import Signal
from everforge.store.base import Change
from everforge.store.memory import MemoryStore
from everforge.wire import frames
from everforge.wire.errors import SandboxLost, SaveFailed
from everforge.wire.events import START, Ended, Event, Output
from everforge.wire.messages import CannotFreeze, Display, End, GuestMessage, Outputs, encode
from kit.house import House, NewMachine


async def new(house: House) -> str:
    return (await house.machines.create(NewMachine())).record.name


async def test_a_guest_that_cannot_freeze_fails_the_save_at_once_and_the_machine_goes_on(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    with monkeypatch.context() as patch:
        patch.setattr("everforge.engine.fake.Frozen", lambda token: CannotFreeze(token, "process 7 (cat) could not be stopped"))  # pyright: ignore
        began = time.monotonic()
        with pytest.raises(SaveFailed, match=r"process 7 \(cat\) could not be stopped"):
            await house.machines.hibernate(name)
        with pytest.raises(SaveFailed, match=r"process 7 \(cat\)"):
            await house.machines.snapshot(name)
        assert time.monotonic() - began < house.settings.guest_answer_seconds
        assert (await house.machines.get(name)).state == "ready"
        assert (await house.machines.run(name, "x")).value == "1"
    await house.machines.hibernate(name)
    assert (await house.machines.run(name, "x")).value == "1"


async def test_an_answer_to_an_earlier_freeze_counts_for_nothing(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    say = FakeSandbox._say

    def say_old_first(sandbox: FakeSandbox, message: object) -> None:
        if type(message).__name__ == "Frozen":
            say(sandbox, CannotFreeze(0, "long ago"))
        say(sandbox, message)  # pyright: ignore[reportArgumentType]

    name = await new(house)
    await house.machines.run(name, "x = 1")
    monkeypatch.setattr(FakeSandbox, "_say", say_old_first)
    await house.machines.hibernate(name)
    assert (await house.machines.get(name)).state == "asleep"


@pytest.mark.parametrize(
    ("said", "limits"),
    [
        ({}, []),
        ({"dropped_bytes": 5}, ["output_bytes_max"]),
        ({"note": "out of memory: 600 MB in use, 512 MB allowed; killed the largest process, 7"}, ["memory_mb"]),
        ({"end": "died", "value": None, "error_message": "the interpreter died: out of memory: 600 MB in use, 512 MB allowed"}, ["memory_mb"]),
    ],
)
async def test_limits_that_a_guest_held_code_to_are_told(
    said: dict[str, Any], limits: list[str], house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    say, heard = FakeSandbox._say, list[Signal]()

    def say_more(sandbox: FakeSandbox, message: GuestMessage) -> None:
        say(sandbox, replace(message, **said) if isinstance(message, End) else message)

    name = await new(house)
    await house.machines.run(name, "0")
    house.machines.forge.signals.listen(heard.append)
    monkeypatch.setattr(FakeSandbox, "_say", say_more)
    await house.machines.run(name, "1")
    assert [(s.machine, s.detail["limit"]) for s in heard if s.kind == "limit.hit"] == [(name, limit) for limit in limits]


# --- floods: a guest that minds neither limits nor acknowledgements, on a link of its own -------------------------------------------------------

MB = 1024 * 1024
LINES = ["ab"] * 10_000


class Flood:
    """The guest's end of a link: says `spoken` as fast as it is read, and counts what was."""

    def __init__(self, spoken: Iterator[GuestMessage]) -> None:
        self._spoken = spoken
        self._outbox = frames.Outbox(frames.GUEST_RECORD_BYTES_MAX)
        self.read_bytes = 0

    async def receive(self) -> bytes:
        await asyncio.sleep(0)
        message = next(self._spoken, None)
        if message is None:
            return await asyncio.get_running_loop().create_future()
        data = b"".join(self._outbox.add(message.kind, encode(message)))
        self.read_bytes += len(data)
        return data

    async def send(self, record: bytes) -> None: ...

    def close(self) -> None: ...


class FloodedSandbox:
    id = "s-flood"

    def __init__(self, link: Flood) -> None:
        self.link = link

    async def ended(self) -> Ending:
        return await asyncio.get_running_loop().create_future()

    async def destroy(self) -> None: ...


class StuckStore(MemoryStore):
    """Writes nothing until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.stuck = asyncio.Event()
        self.stuck.set()

    async def commit(self, change: Change) -> Sequence[Event]:
        await self.stuck.wait()
        return await super().commit(change)


@asynccontextmanager
async def flooded(house: House, *spoken: GuestMessage | Iterator[GuestMessage]) -> AsyncGenerator[tuple[Incarnation, Flood, StuckStore]]:
    def said() -> Iterator[GuestMessage]:
        for one in spoken:
            yield from [one] if isinstance(one, GuestMessage) else one

    record = (await house.machines.get(await new(house))).record
    store = StuckStore()
    await store.create(record)
    link = Flood(said())
    dossier = Dossier(record, store, TapeReaders(store, 16), Steps())
    incarnation = Incarnation(cast(Sandbox, FloodedSandbox(link)), GuestLine(link), dossier, house.settings)
    try:
        yield incarnation, link, store
    finally:
        await incarnation.close()


async def settled(link: Flood) -> int:
    """How much is read until no more is."""
    before = -1
    while before != link.read_bytes:
        before = link.read_bytes
        await asyncio.sleep(0.1)
    return before


def lines(count: int, instruction: int | None) -> Iterator[GuestMessage]:
    return (Outputs(instruction, "stdout", LINES) for _ in range(count))


async def test_nothing_is_read_from_a_guest_while_the_tape_is_stuck(house: House) -> None:
    async with flooded(house, lines(400, 0)) as (incarnation, link, store):
        store.stuck.clear()
        incarnation.expect_end(0)
        incarnation.begin()
        assert await settled(link) < MB
        store.stuck.set()
        assert await settled(link) > 10 * MB


async def test_little_is_read_from_a_guest_while_an_end_is_held_and_all_of_it_reaches_the_tape(house: House) -> None:
    async with flooded(house, End(0, "value", 1), lines(500, None)) as (incarnation, link, store):
        end = incarnation.expect_end(0)
        incarnation.begin()
        await end
        assert await settled(link) < 10 * MB
        await incarnation.commit_end(Ended(instruction=0, end="value"))
        await settled(link)
        tape = await store.events(incarnation._dossier.record.id, START, 5000)  # pyright: ignore[reportPrivateUsage]
        assert sum(len(e.lines) for e in tape if isinstance(e, Output)) == 500 * len(LINES)
        assert isinstance(tape[0], Ended)


async def test_displays_count_as_output(house: House) -> None:
    display = Display(0, {"text/html": "x" * (4 * MB)})
    async with flooded(house, iter([display] * 30)) as (incarnation, link, _):
        end = incarnation.expect_end(0)
        incarnation.begin()
        with pytest.raises(SandboxLost, match="more than"):
            await end
        assert link.read_bytes < 2 * house.settings.output_bytes_max
