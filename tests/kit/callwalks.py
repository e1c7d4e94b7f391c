"""What happens to an instruction that waits for its client's program, for tests that end the server at every step of it."""

from __future__ import annotations

import contextlib

from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from everforge.wire.errors import WrongState
from everforge.wire.events import Called, Ended

from .house import House

CODE = "runs = globals().get('runs', 0) + 1\nx = ask()\n(runs, x)"
ENDS = {
    "sleep": {("value", "(1, 'told')")},
    "awake": {("value", "(1, 'told')")},
    "fork": {("value", "(1, 'told')")},
    "interrupt": {("value", "(1, 'told')"), ("interrupted", None)},
    "interrupt asleep": {("value", "(1, 'told')"), ("interrupted", None)},
    "rollback": {("value", "(1, 'told')"), ("cancelled", None)},
}


async def walk(machines: Machines, what: str) -> None:
    await machines.snapshot("m", "start")
    await machines.exec("m", CODE, functions=["ask"])
    async for event in machines.read("m", follow=True):
        if isinstance(event, Called):
            break
    if what in ("sleep", "interrupt asleep"):
        await machines.hibernate("m")
    if what == "fork":
        await machines.fork("m", names=["copy"])
        assert (await machines.run("copy", "runs")).value == "1"
    elif what == "rollback":
        await machines.rollback("m", snapshot="start")
    elif what.startswith("interrupt"):
        await machines.interrupt("m")
        await machines.result("m", 0)
        await machines.run("m", "runs")
    await finish(machines)


async def finish(machines: Machines) -> None:
    """As a client that comes back: whatever still waits is answered, and everything has one end."""
    if not (await machines.instructions("m"))[0]:
        return
    async for event in machines.read("m", follow=True):
        if isinstance(event, Called):
            with contextlib.suppress(WrongState):
                await machines.answer("m", 0, event.call, value="told")
        elif isinstance(event, Ended) and event.instruction == 0:
            return


async def prepared(kill_at: tuple[str, int] | None = None) -> House:
    house = House()
    await house.start(kill_at)
    await house.machines.create(NewMachine(name="m"))
    await house.machines.wake("m")
    return house
