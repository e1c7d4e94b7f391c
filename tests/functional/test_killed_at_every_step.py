"""Must show 3: the server is ended with SIGKILL at every step of create, exec, save, sleep, wake, fork, rollback, reset and delete, on the real engine.

The steps are heard from an undisturbed run of each walk, so a new step in the code is a new case here. One chain of servers goes through all of them: each
takes over what the one before left behind, is checked, and is killed at the next step.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kit.real import until_gone
from kit.serverprocess import Died, Refusal, ServerProcess, check_nothing_leaked
from kit.walks import WALKS

pytestmark = [pytest.mark.gvisor, pytest.mark.slow]

NAME, FORK, SECOND = "walker", "walker-fork", "second"


@dataclass
class Journal:
    """What this client sent, and what it was told."""

    sent: list[int] = field(default_factory=list[int])
    acknowledged: dict[int, int] = field(default_factory=dict[int, int])  # what was appended -> by which instruction
    done: bool = False  # the walk came to its end, and its client was told so


async def fresh(server: ServerProcess) -> Journal:
    """The machine that every walk begins with."""
    for name in (NAME, FORK, SECOND):
        try:
            await server.call("delete", name=name)
        except Refusal as e:
            if e.code != "MachineNotFound":
                raise
    journal = Journal()
    await server.call("create", name=NAME)
    await server.call("run", name=NAME, code="seen = []")
    await append(server, journal)
    await server.call("snapshot", name=NAME, snapshot_name="start")
    await append(server, journal)
    return journal


async def append(server: ServerProcess, journal: Journal) -> None:
    number = len(journal.sent)
    journal.sent.append(number)
    ended = await server.call("run", name=NAME, code=f"seen.append({number})")
    assert ended["end"] == "value", ended
    journal.acknowledged[number] = ended["instruction"]


async def walk(server: ServerProcess, operation: str, journal: Journal) -> None:
    match operation:
        case "create":
            await server.call("create", name=SECOND)
            assert (await server.call("run", name=SECOND, code="1 + 1"))["value"] == "2"
        case "exec":
            await append(server, journal)
        case "save":
            await server.call("snapshot", name=NAME, snapshot_name="walk")
            await append(server, journal)
        case "sleep and wake":
            await server.call("hibernate", name=NAME)
            await append(server, journal)
        case "fork":
            await server.call("fork", name=NAME, names=[FORK])
            assert (await server.call("run", name=FORK, code="len(seen)"))["end"] == "value"
        case "rollback":
            await server.call("rollback", name=NAME, snapshot="start")
            await server.call("run", name=NAME, code="1")
        case "reset":
            await server.call("reset", name=NAME)
            await server.call("run", name=NAME, code="1")
        case "forget":
            await server.call("hibernate", name=NAME)
            await server.call("forget", name=NAME, snapshot="start")
        case "delete":
            await server.call("delete", name=NAME)
        case "each":
            await server.call("update", name=NAME, durability="each")
            await append(server, journal)
        case _:
            raise AssertionError(operation)


GOING_BACK = {"rollback": "[0]", "reset": "NameError"}  # what `seen` is afterwards
STATES = {"creating", "ready", "busy", "hibernating", "asleep", "waking"}  # nothing here may break a machine
OPERATIONS = list(WALKS)  # the same as on the fake engine, where a test holds them against every step that the code has


async def steps_of(server: ServerProcess, operation: str) -> list[str]:
    journal = await fresh(server)
    await server.call("forget_steps")
    await walk(server, operation, journal)
    heard: list[str] = await server.call("steps")
    # "after A" and the "before B" that follows it at once are one and the same place.
    return [
        step for step, following in zip(heard, [*heard[1:], ""], strict=True) if not (step.startswith("1:after") and following.startswith("1:before"))
    ]


async def check(server: ServerProcess, operation: str, journal: Journal) -> None:
    """A state that the tables allow, every acknowledged result there once, every machine answers."""
    views = {v["record"]["name"]: v for v in await server.call("list")}
    assert set(views) <= {NAME, FORK, SECOND}
    for name, view in views.items():
        assert view["state"] in STATES, view
        tape = await server.call("tape", name=name)
        ended = [e["instruction"] for e in tape if e["kind"] == "ended"]
        assert len(ended) == len(set(ended)), "an instruction ended twice"
        if name != SECOND:
            values = {e["instruction"] for e in tape if e["kind"] == "ended" and e["end"] == "value"}
            assert values >= set(list(journal.acknowledged.values())[: 2 if name == FORK else None]), "a result that was told is not on the tape"
    await check_machine(server, operation, journal, there=NAME in views)
    if FORK in views or (operation == "fork" and journal.done):
        assert (await server.call("run", name=FORK, code="seen"))["value"] == "[0, 1]"
    if SECOND in views or (operation == "create" and journal.done):
        assert (await server.call("run", name=SECOND, code="1 + 1"))["value"] == "2"


async def check_machine(server: ServerProcess, operation: str, journal: Journal, *, there: bool) -> None:
    if operation == "delete" and (journal.done or not there):
        assert not there, "it was deleted, and is there again"
        return
    assert there, "the machine is gone, and nobody asked for that"
    answer = await server.call("run", name=NAME, code="seen")
    as_before = answer["value"] == repr(list(journal.acknowledged))
    if operation in GOING_BACK:
        gone_back = GOING_BACK[operation] in (answer["value"] or answer["error"])
        assert gone_back or (as_before and not journal.done), answer
        return
    seen: list[int] = eval(answer["value"])
    assert seen == sorted(set(seen)), "twice, or out of order"
    assert set(journal.acknowledged) <= set(seen) <= set(journal.sent), (journal, seen)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_killed_at_every_step_of(operation: str, data: Path) -> None:
    server = await ServerProcess(data).start()
    steps = await steps_of(server, operation)
    assert len(steps) >= 4, steps
    following = await ServerProcess(data).spawn()
    for step in steps:
        journal = await fresh(server)
        await server.call("kill_at", step=step)
        try:
            await walk(server, operation, journal)
            journal.done = True
        except (Died, Refusal):
            pass
        await server.wait_dead()
        server, following = await following.start(), await ServerProcess(data).spawn()
        try:
            await check(server, operation, journal)
            await check_nothing_leaked(server)
        except BaseException as e:
            raise AssertionError(f"killed at {step} of {operation}: {e!r}") from e
    await following.kill()
    await fresh(server)
    await server.call("delete", name=NAME)
    await server.stop()
    await until_gone(data)
    assert os.listdir(data)
