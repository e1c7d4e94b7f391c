"""The server is ended with SIGKILL at every step of create, exec, save, sleep, wake, fork, rollback, reset, delete and packing, on the real
engine; and somewhere inside those that take long.

The steps are heard from an undisturbed run of each walk, so a new step in the code is a new case here. One chain of servers goes through all of them: each
takes over what the one before left behind, is checked, and is killed at the next step.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from kit.length import TIMEOUT_FACTOR, length
from kit.serverprocess import Died, Refusal, ServerProcess, check_nothing_leaked
from kit.serverwalks import OPERATIONS, check, check_points, end, fresh, walk
from kit.walks import is_part_of

pytestmark = [pytest.mark.gvisor, pytest.mark.slow]


@dataclass(frozen=True)
class Kill:
    """Of the server, or of its packing process, so long after it came to a step."""

    step: str
    seconds: float = 0.0
    whom: str = "server"


async def heard_in(server: ServerProcess, operation: str) -> list[tuple[str, float]]:
    """Every step of an undisturbed run, with its time."""
    journal = await fresh(server)
    await server.call("forget_steps")
    await walk(server, operation, journal)
    heard: list[tuple[str, float]] = await server.call("steps")
    return [(step, at) for step, at in heard if is_part_of(operation, step.partition(":")[2])]


async def kills_at_every_step(server: ServerProcess, operation: str) -> list[Kill]:
    steps = [step for step, _ in await heard_in(server, operation)]
    assert len(steps) >= 4, steps
    # "after A" and the "before B" that follows it at once are one and the same place.
    following = [*steps[1:], ""]
    return [Kill(step) for step, then in zip(steps, following, strict=True) if not (step.startswith("1:after") and then.startswith("1:before"))]


async def kills_inside(server: ServerProcess, operation: str, step: str, count: int, whom: str = "server") -> list[Kill]:
    times = dict(await heard_in(server, operation))
    begin, end = f"1:before {step}", f"1:after {step}"
    chosen = random.Random(f"{operation} {step} {whom}")
    return [Kill(begin, chosen.uniform(0.0, times[end] - times[begin]), whom) for _ in range(count)]


async def live_through(data: Path, operation: str, kills: Sequence[Kill], server: ServerProcess) -> None:
    following = await ServerProcess(data).spawn()
    for kill in kills:
        journal = await fresh(server)
        await server.call("kill_at", step=kill.step, seconds=kill.seconds, whom=kill.whom)
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
            raise AssertionError(f"killed at {kill} of {operation}: {e!r}") from e
    await following.kill()
    await end(server, data)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_killed_at_every_step_of(operation: str, data: Path) -> None:
    server = await ServerProcess(data).start()
    await live_through(data, operation, await kills_at_every_step(server, operation), server)


LONG_STEPS = {"restore": "sleep and wake", "save": "save", "finish snapshot": "save", "pack": "pack"}  # in which walk they are


@pytest.mark.timeout(300 * TIMEOUT_FACTOR)
@pytest.mark.parametrize("step", LONG_STEPS)
async def test_killed_somewhere_inside(step: str, data: Path) -> None:
    server = await ServerProcess(data).start()
    operation = LONG_STEPS[step]
    await live_through(data, operation, await kills_inside(server, operation, step, length(3, 40)), server)


@pytest.mark.timeout(300 * TIMEOUT_FACTOR)
async def test_the_packing_process_is_killed_somewhere_and_the_server_goes_on(data: Path) -> None:
    server = await ServerProcess(data).start()
    for kill in await kills_inside(server, "pack", "pack", length(3, 40), whom="packer"):
        journal = await fresh(server)
        await server.call("kill_at", step=kill.step, seconds=kill.seconds, whom=kill.whom)
        await walk(server, "save", journal)  # makes a point that is to be packed
        try:
            assert await server.call("until_killed"), "nothing was packed"
            await check_points(server, journal)
            await check_nothing_leaked(server)
        except BaseException as e:
            raise AssertionError(f"{kill}: {e!r}") from e
    await end(server, data)
