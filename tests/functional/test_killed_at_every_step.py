"""Must show 3: the server is ended with SIGKILL at every step of create, exec, save, sleep, wake, fork, rollback, reset and delete, on the real engine.

The steps are heard from an undisturbed run of each walk, so a new step in the code is a new case here. One chain of servers goes through all of them: each
takes over what the one before left behind, is checked, and is killed at the next step.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

from kit.folders import strangers
from kit.real import processes_of, until_gone
from kit.serverprocess import Died, Refusal, ServerProcess

pytestmark = [pytest.mark.gvisor, pytest.mark.slow]

NAME, FORK, SECOND = "walker", "walker-fork", "second"


async def fresh(server: ServerProcess) -> dict[str, list[int]]:
    """The machine that every walk begins with."""
    for name in (NAME, FORK, SECOND):
        try:
            await server.call("delete", name=name)
        except Refusal as e:
            if e.code != "MachineNotFound":
                raise
    journal: dict[str, list[int]] = {"sent": [], "acknowledged": []}
    await server.call("create", name=NAME)
    await server.call("run", name=NAME, code="seen = []")
    await append(server, journal)
    await server.call("snapshot", name=NAME, snapshot_name="start")
    await append(server, journal)
    return journal


async def append(server: ServerProcess, journal: dict[str, list[int]]) -> None:
    number = len(journal["sent"])
    journal["sent"].append(number)
    ended = await server.call("run", name=NAME, code=f"seen.append({number})")
    assert ended["end"] == "value", ended
    journal["acknowledged"].append(number)


async def walk(server: ServerProcess, operation: str, journal: dict[str, list[int]]) -> None:
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
        case "delete":
            await server.call("delete", name=NAME)
        case _:
            raise AssertionError(operation)


OPERATIONS = ["create", "exec", "save", "sleep and wake", "fork", "rollback", "reset", "delete"]


async def steps_of(server: ServerProcess, operation: str) -> list[str]:
    journal = await fresh(server)
    await server.call("forget_steps")
    await walk(server, operation, journal)
    heard: list[str] = await server.call("steps")
    # "after A" and the "before B" that follows it at once are one and the same place.
    return [
        step for step, following in zip(heard, [*heard[1:], ""], strict=True) if not (step.startswith("1:after") and following.startswith("1:before"))
    ]


async def check(server: ServerProcess, operation: str, journal: dict[str, list[int]]) -> None:
    """A state that the tables allow, every acknowledged result there once, every machine answers."""
    views = {v["record"]["name"]: v for v in await server.call("list")}
    if NAME not in views:
        assert operation == "delete", "the machine is gone, and nobody asked for that"
    for name, view in views.items():
        assert view["state"] != "broken", view["record"]["error"]
        tape = await server.call("tape", name=name)
        ended = [e["instruction"] for e in tape if e["kind"] == "ended"]
        assert len(ended) == len(set(ended)), "an instruction ended twice"
        answer = await server.call("run", name=name, code="seen" if name != SECOND else "1")
        if name == NAME:
            check_state(operation, journal, answer)


def check_state(operation: str, journal: dict[str, list[int]], answer: dict[str, Any]) -> None:
    if operation in ("rollback", "reset") and answer["value"] != repr(journal["acknowledged"]):
        assert answer["value"] == "[0]" or "NameError" in answer["error"], answer
        return
    seen: list[int] = eval(answer["value"])
    assert seen == sorted(set(seen)), "twice, or out of order"
    assert set(journal["acknowledged"]) <= set(seen) <= set(journal["sent"]), (journal, seen)


async def check_nothing_leaked(server: ServerProcess) -> None:
    """Every sandbox on the host belongs to a machine (or waits empty in the pool), every folder to a point."""
    deadline = time.monotonic() + 5
    while left := await left_behind(server):
        assert time.monotonic() < deadline, f"left behind: {left}"
        await asyncio.sleep(0.05)


async def left_behind(server: ServerProcess) -> set[str]:
    claimed, folders = await server.call("claims")
    running = {c.split()[-1] for c in processes_of(server.data).values() if "runsc" in c and " boot " in c}
    return strangers(server.data / "snapshots", folders) | (running - set(claimed))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_killed_at_every_step_of(operation: str, data: Path) -> None:
    server = await ServerProcess(data).start()
    steps = await steps_of(server, operation)
    assert len(steps) >= 4, steps
    for step in steps:
        journal = await fresh(server)
        await server.call("kill_at", step=step)
        try:
            await walk(server, operation, journal)
        except (Died, Refusal):
            pass
        await server.wait_dead()
        server = await ServerProcess(data).start()
        try:
            await check(server, operation, journal)
            await check_nothing_leaked(server)
        except BaseException as e:
            raise AssertionError(f"killed at {step} of {operation}: {e!r}") from e
    await fresh(server)
    await server.call("delete", name=NAME)
    await server.stop()
    await until_gone(data)
    assert os.listdir(data)
