"""CPU-bound Python in a machine and on the host: the image's own interpreter on both sides, timed by itself."""

from __future__ import annotations

import subprocess

from bench.house import House
from bench.measure import Result, in_turns, result

WORK = """
import time
def work(n):
    total, seen = 0, {}
    for i in range(n):
        total = (total * 31 + i) % 1000003
        seen[total & 1023] = i
    return total
def timed():
    began = time.perf_counter()
    work(2_000_000)
    return time.perf_counter() - began
"""


async def measure(house: House, count: int) -> list[Result]:
    name = await house.new(WORK)

    async def ours() -> float:
        return float(await house.run(name, "timed()") or 0)

    async def theirs() -> float:
        return _host_seconds(house)

    mine, host = await in_turns(count, ours, theirs)
    await house.machines.delete(name)
    return [result("14", mine, host, ("in a machine", "the image's python3 on the host"))]


def _host_seconds(house: House) -> float:
    command = ["chroot", str(house.image.root), "/usr/bin/python3", "-I", "-S", "-c", f"{WORK}\nprint(timed())"]
    return float(subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout)
