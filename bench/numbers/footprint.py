"""Memory of the host that an awake machine takes with numpy, pandas and matplotlib imported, against a Jupyter kernel with the same.

Ours is the working set of the sandbox's control group: sentry, gofer, all processes of the guest, the files that it read, and what the kernel
needs for them. Jupyter's is the proportional set size of all processes of the kernel: its private pages, and of each page that others map too only
its share, without file cache and kernel memory. That counts it kindly: other Pythons on the host (this one is one) take part of its libraries.
"""

from __future__ import annotations

import asyncio
import statistics
import time

from bench import jupyter
from bench.house import House
from bench.measure import Result, in_turns, result
from bench.memory import MB, pss_mb, rss_mb, uss_mb

IMPORTS = "import numpy, pandas, matplotlib.pyplot"
REST_SECONDS = 1.0


async def measure(house: House, count: int) -> list[Result]:
    others: list[tuple[float, float]] = []

    async def ours() -> float:
        name = await house.new(IMPORTS)
        await asyncio.sleep(REST_SECONDS)
        taken = await house.machines.memory_bytes(name)
        await house.machines.delete(name)
        return taken / MB / 1000

    async def theirs() -> float:
        taken, *rest = await asyncio.to_thread(_kernel_mb)
        others.append((rest[0], rest[1]))
        return taken / 1000

    mine, kernels = await in_turns(count, ours, theirs)
    unique, resident = (statistics.median(column) for column in zip(*others, strict=True))
    notes = {"kernel USS MB": unique, "kernel RSS MB": resident}
    sides = ("control group of the sandbox: sentry, gofer, guest", "PSS of all processes of the kernel")
    return [result("11", mine, kernels, sides, unit="MB", notes=notes)]


def _kernel_mb() -> tuple[float, float, float]:
    with jupyter.kernel(IMPORTS) as kernel:
        time.sleep(REST_SECONDS)
        return pss_mb(kernel.pids), uss_mb(kernel.pids), rss_mb(kernel.pids)
