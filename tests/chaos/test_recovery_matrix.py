"""The recovery matrix cell by cell on the real engine: what the record said, what became of the sandbox, what the next server makes of it.

One server brings up a machine for every cell and is killed; sandboxes are ended or left as the cell says, the records are written as a server that died
there would have left them; and the next server must put all of them right at once.
"""

from __future__ import annotations

import asyncio
import enum
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from everforge.machines.lifecycle import Residence
from everforge.machines.recover import MATRIX, ON_THEIR_WAY, Guest
from everforge.store.base import Change
from everforge.store.sql.store import SqlStore
from everforge.wire.ids import OWNER, MachineName
from kit.real import sandboxes_of, until_gone
from kit.serverprocess import ServerProcess, check_nothing_leaked

pytestmark = [pytest.mark.gvisor, pytest.mark.slow]

AT_ONCE = 4  # machines brought up together


class Then(enum.StrEnum):
    """What the machine's owner finds."""

    GOES_ON = "goes on"  # in the same sandbox, with everything since the last snapshot
    BACK = "back"  # at its snapshot; nothing that had been acknowledged in this life of it is gone
    LOST = "lost"  # at its snapshot, and told what is gone
    BROKEN = "broken"
    DELETED = "deleted"


R, G = Residence, Guest
# Not read from the matrix: this is what it must come to, and a cell that is not here is not allowed there.
EXPECTED = {
    (R.CREATING, G.GONE): Then.BACK,
    (R.CREATING, G.FROZEN): Then.BACK,
    (R.CREATING, G.WENT): Then.GOES_ON,
    (R.AWAKE, G.GONE): Then.LOST,
    (R.AWAKE, G.FROZEN): Then.GOES_ON,
    (R.AWAKE, G.WENT): Then.GOES_ON,
    (R.SAVING, G.GONE): Then.LOST,
    (R.SAVING, G.FROZEN): Then.GOES_ON,
    (R.SAVING, G.WENT): Then.GOES_ON,
    (R.HIBERNATING, G.GONE): Then.LOST,
    (R.HIBERNATING, G.FROZEN): Then.GOES_ON,
    (R.HIBERNATING, G.WENT): Then.GOES_ON,
    (R.ASLEEP, G.GONE): Then.BACK,
    (R.ASLEEP, G.FROZEN): Then.BACK,
    (R.ASLEEP, G.WENT): Then.BACK,
    (R.WAKING, G.GONE): Then.BACK,
    (R.WAKING, G.FROZEN): Then.BACK,
    (R.WAKING, G.WENT): Then.GOES_ON,
    (R.BROKEN, G.GONE): Then.BROKEN,
    (R.BROKEN, G.FROZEN): Then.BROKEN,
    (R.BROKEN, G.WENT): Then.BROKEN,
    (R.DELETING, G.GONE): Then.DELETED,
    (R.DELETING, G.FROZEN): Then.DELETED,
    (R.DELETING, G.WENT): Then.DELETED,
}
STATES = {  # before anybody asks anything of it
    Then.GOES_ON: {"ready"},
    Then.BACK: {"asleep", "creating", "ready"},
    Then.LOST: {"asleep"},
    Then.BROKEN: {"broken"},
}


@dataclass
class Cell:
    residence: Residence
    guest: Guest
    sandbox: str = ""

    @property
    def name(self) -> str:
        return f"{self.residence}-{self.guest}"

    @property
    def then(self) -> Then:
        return EXPECTED[self.residence, self.guest]


def test_every_cell_of_the_matrix_is_here() -> None:
    assert set(EXPECTED) == set(MATRIX)


@pytest.mark.timeout(400)
async def test_what_a_killed_server_leaves_in_each_cell_is_put_right(data: Path) -> None:
    cells = [Cell(*cell) for cell in MATRIX]
    server = await ServerProcess(data).start()
    await bring_up(server, cells)
    await server.kill()
    await end_sandboxes(data, [c for c in cells if c.guest is G.GONE])
    await write_records(data, cells)
    running = running_in(data)
    for cell in cells:
        assert (cell.sandbox in running) == (cell.guest is not G.GONE), f"{cell.name} is not the cell it is taken for"
    told_before = server.log.stat().st_size
    server = await ServerProcess(data).start()
    told = server.log.read_bytes()[told_before:].decode()
    views = {view["record"]["name"]: view for view in await server.call("list")}
    running = running_in(data)
    for cell in cells:
        try:
            assert (cell.sandbox in running) == (cell.then is Then.GOES_ON), "its sandbox"
            await check(server, cell, views.get(cell.name), told)
        except AssertionError as e:
            raise AssertionError(f"{cell.name}, which {cell.then}: {e}") from e
    await check_nothing_leaked(server)
    for name in (view["record"]["name"] for view in await server.call("list")):
        await server.call("delete", name=name)
    await server.stop()
    await until_gone(data)


async def bring_up(server: ServerProcess, cells: list[Cell]) -> None:
    """A snapshot with x = 'saved', and something newer in memory."""
    await server.call("create", name="source")
    await server.call("run", name="source", code="x = 'saved'")
    await server.call("fork", name="source", names=[cell.name for cell in cells])
    places = asyncio.Semaphore(AT_ONCE)

    async def bring_up_one(cell: Cell) -> None:
        async with places:
            assert (await server.call("run", name=cell.name, code="x = 'since'"))["end"] == "value"
            if cell.guest is G.FROZEN:
                await server.call("freeze", name=cell.name)
            cell.sandbox = (await server.call("get", name=cell.name))["record"]["sandbox"]

    await asyncio.gather(*map(bring_up_one, cells))


def running_in(data: Path) -> set[str]:
    """The ids of all sandboxes on the host; they come last on the command line of a sentry."""
    return {command.split()[-1] for command in sandboxes_of(data).values() if " boot " in command}


async def end_sandboxes(data: Path, cells: list[Cell]) -> None:
    doomed = {cell.sandbox for cell in cells}
    for pid, command in sandboxes_of(data).items():
        if any(sandbox in command for sandbox in doomed):
            os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(20):
        while running_in(data) & doomed:
            await asyncio.sleep(0.02)


async def write_records(data: Path, cells: list[Cell]) -> None:
    store = await SqlStore.open(data / "everforge.db")
    for cell in cells:
        record = await store.find(OWNER, MachineName(cell.name))
        assert record is not None
        claimed = cell.residence not in (R.ASLEEP, R.BROKEN)
        await store.commit(Change(machine=record.id, set={"residence": str(cell.residence), "sandbox": cell.sandbox if claimed else None}))
    await store.close()


async def check(server: ServerProcess, cell: Cell, view: dict[str, Any] | None, told: str) -> None:
    if cell.residence in ON_THEIR_WAY:
        assert f"machine {cell.name} was {cell.residence}, of its guest: {cell.guest};" in told, "another cell was recovered"
    if cell.then is Then.DELETED:
        assert view is None
        return
    assert view is not None
    assert view["state"] in STATES[cell.then], view
    if cell.then is not Then.BROKEN:
        await check_memory(server, cell)


async def check_memory(server: ServerProcess, cell: Cell) -> None:
    ended = await server.call("run", name=cell.name, code="x")
    assert ended["value"] == ("'since'" if cell.then is Then.GOES_ON else "'saved'"), ended
    assert ("lost" in (ended["note"] or "")) == (cell.then is Then.LOST), ended
    tape = await server.call("tape", name=cell.name)
    lost = [(e["first_instruction"], e["last_instruction"]) for e in tape if e["kind"] == "lost"]
    assert lost == ([(1, 1)] if cell.then is Then.LOST else [])
    numbers = [e["instruction"] for e in tape if e["kind"] == "ended"]
    assert numbers == [0, 1, 2], "every instruction ends once"
    if cell.then is Then.GOES_ON:
        assert (await server.call("get", name=cell.name))["record"]["sandbox"] == cell.sandbox
