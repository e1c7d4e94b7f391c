"""A machine that is bombed, its neighbour who must hardly notice, and the server in this process whose memory must stay flat."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from everforge.wire.events import Ended

from .pulse import Pulse
from .real import TESTED, real_machines, until_gone

SETTINGS = replace(TESTED, memory_mb=384, disk_mb=256, processes=12, output_bytes_max=8 * 1024 * 1024)
NEIGHBOUR_FACTOR = 2.0
NOISE_FACTOR = 1.5  # of the computer's own pulse
TRIES = 5
QUIET_SECONDS, LOUD_SECONDS = 3, 4
SERVER_GROWTH_MB = 40  # at most, at any moment: buffers of one flood, the link's, a batch on its way to the tape; not the 2 GB that were printed


def peak_mb() -> float:
    """The most that this process, which is the server, has had in memory since `forget_peak`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise AssertionError("/proc/self/status has no VmHWM")


def forget_peak() -> float:
    """What earlier tests freed is given back first: it would hide growth. Returns what is left."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return peak_mb()


async def trivial_p99(machines: Machines, name: str, seconds: float) -> float:
    times: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        assert (await machines.run(name, "1 + 1")).value == "2"
        times.append(time.perf_counter() - began)
        await asyncio.sleep(0.005)
    return statistics.quantiles(times, n=100)[98]


@dataclass
class Heard:
    """The neighbour's p99 and the computer's own, beside a quiet machine and beside the bomb."""

    neighbour: tuple[float, float]
    computer: tuple[float, float]

    @property
    def ratio(self) -> float:
        return self.neighbour[1] / self.neighbour[0]

    @property
    def relative(self) -> float:
        """Without what the computer itself was slower by."""
        return self.ratio / max(1.0, self.computer[1] / self.computer[0])


@asynccontextmanager
async def neighbours(data: Path, **wanted: int) -> AsyncGenerator[tuple[Machines, str, str]]:
    """The machine to be bombed, with a point to go back to, and one beside it."""
    async with real_machines(data, SETTINGS) as machines:
        bombed = (await machines.create(NewMachine(**wanted))).record.name  # pyright: ignore[reportArgumentType]
        neighbour = (await machines.create(NewMachine())).record.name
        for name in (bombed, neighbour):
            assert (await machines.run(name, "x = 1")).end == "value"
        await machines.snapshot(bombed, "before the bomb")
        yield machines, bombed, neighbour
    await until_gone(data)


Look = Callable[[Machines, str, Ended], Awaitable[None]]


async def bomb(data: Path, code: str, timeout_seconds: float = 20, look: Look | None = None, *, long: bool = False, **wanted: int) -> Ended:
    """Runs it, holds the neighbour and the server to their promises, and returns how the bomb ended, once the machine has answered again.

    A long one runs to its end only once.

    A p99 of a few seconds is a handful of answers, and others use this computer, too: a neighbour that is too slow is asked again, and what it could be
    in the best of several tries is what the bomb does to it. A try after which the computer itself had been slow at its beginning, by a measure that no
    bomb reaches, does not count.
    """
    pulse, tries = await Pulse().start(), list[Heard]()
    first: Ended | None = None
    try:
        async with neighbours(data, **wanted) as (machines, bombed, neighbour):
            while len(tries) < TRIES:
                ended, heard = await _bomb_once(machines, bombed, neighbour, code, timeout_seconds, pulse, cut=long and bool(tries))
                first = first or ended
                if look is not None:
                    await look(machines, bombed, ended)
                tries.append(heard)
                calm = heard.computer[0] < NOISE_FACTOR * min(h.computer[0] for h in tries)  # a slow beginning would flatter what comes after
                if calm and heard.relative < NEIGHBOUR_FACTOR:
                    return first
        ratios = ", ".join(f"{heard.ratio:.1f}" for heard in tries)
        raise AssertionError(f"the neighbour's p99 was {ratios} times that beside a quiet machine: {tries}")
    finally:
        await pulse.stop()


async def _bomb_once(
    machines: Machines, bombed: str, neighbour: str, code: str, timeout_seconds: float, pulse: Pulse, *, cut: bool
) -> tuple[Ended, Heard]:
    await pulse.p99()
    quiet = await trivial_p99(machines, neighbour, QUIET_SECONDS), await pulse.p99()
    before_mb = forget_peak()
    running, _ = await machines.exec(bombed, code, timeout_seconds=timeout_seconds)
    loud = await trivial_p99(machines, neighbour, LOUD_SECONDS), await pulse.p99()
    if cut:
        await machines.interrupt(bombed)
    ended = await machines.result(bombed, running)
    assert peak_mb() - before_mb < SERVER_GROWTH_MB, f"the server's memory grew by {peak_mb() - before_mb:.0f} MB"
    await check_answers_again(machines, bombed, ended)
    return ended, Heard((quiet[0], loud[0]), (quiet[1], loud[1]))


async def check_answers_again(machines: Machines, bombed: str, ended: Ended) -> None:
    """With what it had, or with a word about what became of it."""
    view = await machines.get(bombed)
    if view.state == "broken":
        assert ended.end == "lost", ended
        assert "before the bomb" in (view.record.error or ""), view.record.error
        await machines.rollback(bombed, snapshot="before the bomb")
    after = await machines.run(bombed, "x", timeout_seconds=60)
    if after.value != "1":
        assert "new interpreter" in (after.note or ""), after
        assert "InterpreterDied" in (ended.error or "") or ended.end == "timed_out", ended
        assert (await machines.run(bombed, "x = 1")).end == "value"
