"""A spread of what test_faults.py does in full, on the real engine: calls that fail once, and a warden that is killed at a step of an operation.

One server goes through all of it. Whatever failed costs an error at the most: the machine is there with everything that was acknowledged, nothing is
left behind, and the same operation works when it is tried again.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from everforge.machines.forge import Forge
from everforge.machines.requests import NewMachine
from everforge.server import bootstrap
from everforge.wire.events import Lost
from kit.faults import FAILED, FULL, Fault, Faults, faulty_parts
from kit.real import real_machines, until_gone
from kit.serverprocess import Refusal, ServerProcess, check_nothing_leaked
from kit.serverwalks import Journal, NotDone, check, end, fresh, walk

pytestmark = [pytest.mark.gvisor, pytest.mark.slow]

FAULTS = [
    ("create", "engine.restore", 1, "WakeFailed"),
    ("exec", "store.commit", 1, FULL),
    ("exec", "store.commit", 2, FAILED),
    ("save", "sandbox.save", 1, "SaveFailed"),
    ("save", "snapshots.finish", 1, "SaveFailed"),
    ("save", "store.commit", 2, FAILED),
    ("sleep and wake", "sandbox.save", 1, FULL),
    ("sleep and wake", "sandbox.destroy", 1, "SandboxLost"),
    ("sleep and wake", "engine.restore", 1, "WakeFailed"),
    ("fork", "store.create_together", 1, FULL),
    ("rollback", "sandbox.destroy", 1, "SandboxLost"),
    ("rollback", "engine.restore", 1, "WakeFailed"),
    ("each", "sandbox.save", 1, FULL),
    ("delete", "sandbox.destroy", 1, "SandboxLost"),
]
DONE_ALREADY = {"NameTaken", "MachineNotFound", "SnapshotNotFound"}  # in spite of the error


async def walk_into(server: ServerProcess, operation: str, journal: Journal) -> str:
    """The words of the error, if there is one."""
    try:
        await walk(server, operation, journal)
    except (Refusal, NotDone) as e:
        return str(e)
    journal.done = True
    return ""


async def check_and_try_again(server: ServerProcess, operation: str, journal: Journal) -> None:
    if operation != "delete":  # half deleted it is not there, and not yet gone: that takes another try
        await check(server, operation, journal)
    if not journal.done:
        try:
            await walk(server, operation, journal)
        except Refusal as e:
            if e.code not in DONE_ALREADY:
                raise
        await check(server, operation, journal)
    await check_nothing_leaked(server)


@pytest.mark.timeout(600)
async def test_a_call_that_fails_costs_an_error_at_the_most(data: Path) -> None:
    server = await ServerProcess(data).start()
    struck = 0
    for operation, what, nth, error in FAULTS:
        journal = await fresh(server)
        await server.call("fail", what=what, nth=nth, error=error)
        said = await walk_into(server, operation, journal)
        struck += await server.call("mend")
        try:
            await check_and_try_again(server, operation, journal)
        except BaseException as e:
            raise AssertionError(f"{what} failed with {error} ({nth}) in {operation}, which said {said!r}: {e!r}") from e
    assert struck == len(FAULTS)
    await end(server, data)


KILLS = [
    ("create", "restore"),
    ("save", "save"),
    ("sleep and wake", "save"),
    ("sleep and wake", "destroy"),
    ("sleep and wake", "restore"),
    ("exec", "run"),
]


@pytest.mark.timeout(600)
async def test_a_warden_that_is_killed_at_a_step_costs_an_error_at_the_most(data: Path) -> None:
    server = await ServerProcess(data).start()
    for operation, step in KILLS:
        journal = await fresh(server)
        before = await server.call("warden")
        await server.call("kill_at", step=f"1:before {step}", seconds=0.0, whom="warden")
        said = await walk_into(server, operation, journal)
        try:
            await check_and_try_again(server, operation, journal)
            await until_replaced(server, before)
        except BaseException as e:
            raise AssertionError(f"the warden was killed before {step} in {operation}, which said {said!r}: {e!r}") from e
    await end(server, data)


async def test_a_store_that_fails_once_at_a_start_takes_no_living_machine_with_it(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = Faults()
    monkeypatch.setattr(bootstrap, "Forge", lambda **parts: Forge(**faulty_parts(faults, **parts)))
    async with real_machines(data, stay=True) as machines:
        await machines.create(NewMachine(name="m"))
        await machines.run("m", "x = 1")
        await machines.snapshot("m", "point")
        await machines.run("m", "x = 2")
    faults.plan(Fault("store.received", 1, FAILED))
    async with real_machines(data) as machines:
        assert faults.clear() == 1
        assert (await machines.run("m", "x")).value == "2"
        assert not [e async for e in machines.read("m") if isinstance(e, Lost)]
    await until_gone(data)


async def until_replaced(server: ServerProcess, warden: int) -> None:
    async with asyncio.timeout(20):
        while await server.call("warden") == warden:
            await asyncio.sleep(0.02)
