"""How long this computer takes for very little: a byte to another process, a moment's work there, and a byte back, again and again. Before all other
programs, where it may: then it is late only where the computer itself is, because others share its processors from outside.

What is measured on a shared computer means something only while this stays the same. Run as `python -m kit.pulse`: every line on its standard input is
answered with the 99th percentile, in seconds, since the last one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import statistics
import sys
import time

PAUSE_SECONDS = 0.005
WORK = 30_000  # about what an instruction that does nothing takes


class Pulse:
    async def start(self) -> Pulse:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "kit.pulse", stdin=pipe, stdout=pipe, cwd=os.path.dirname(__file__) + "/.."
        )
        await self.p99()
        return self

    async def p99(self) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        async with asyncio.timeout(10):
            return float(await self._process.stdout.readline())

    async def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()


def beat() -> None:
    with contextlib.suppress(OSError):  # not for everybody
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    there, back = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(there[1])
        while byte := os.read(there[0], 1):
            sum(range(WORK))
            os.write(back[1], byte)
        os._exit(0)
    times: list[float] = []
    while True:
        began = time.perf_counter()
        os.write(there[1], b".")
        os.read(back[0], 1)
        times.append(time.perf_counter() - began)
        if select.select([0], [], [], PAUSE_SECONDS)[0]:
            if not os.read(0, 1):
                return
            print(statistics.quantiles(times, n=100)[98] if len(times) > 1 else times[0], flush=True)
            times.clear()


if __name__ == "__main__":
    beat()
