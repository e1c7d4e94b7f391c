"""A machine that takes all it can, and its neighbour: the p99 of trivial instructions beside the bomb, against that beside a quiet machine.

Both have the default sizes: on a computer with two processors the bomb may have both of them.
"""

from __future__ import annotations

import asyncio
import os
import time

from bench.house import House
from bench.measure import Result, percentile, result
from bench.memory import rss_mb

SECONDS = 4.0  # for each side of each round
PAUSE_SECONDS = 0.005
BOMBS = {
    "bomb-loop": "import os\nfor _ in range(7): os.fork() or exec('while True: pass')\nwhile True: pass",
    "bomb-forks": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "bomb-memory": "hoard = []\nwhile True:\n    try: hoard.append(bytearray(b'x') * (8 << 20))\n    except MemoryError: hoard.clear()",
    "bomb-disk": "while True:\n    with open('fill', 'wb') as f:\n        for _ in range(200): f.write(bytes(1 << 20))",
    "bomb-output": "while True: print('x' * 999)",
    "bomb-pieces": "import sys\nwhile True: print('a'); print('b', file=sys.stderr)",
    "bomb-results": "class Many:\n    def _repr_json_(self): return dict.fromkeys(map(str, range(110_000)))\nwhile True: display(Many())",
}
SIDES = ("the neighbour's p99 beside the bomb", "beside a quiet machine")


async def measure(house: House, count: int) -> list[Result]:
    return [await _measure_one(house, key, code, count) for key, code in BOMBS.items()]


async def _measure_one(house: House, key: str, code: str, count: int) -> Result:
    loud, quiet, growth = list[float](), list[float](), list[float]()
    neighbour = await house.new()
    for _ in range(count):
        bombed = await house.new()
        quiet.append(await _p99_ms(house, neighbour))
        before_mb = rss_mb([os.getpid()])
        running, _ = await house.machines.exec(bombed, code, timeout_seconds=2 * SECONDS)
        loud.append(await _p99_ms(house, neighbour))
        growth.append(rss_mb([os.getpid()]) - before_mb)
        await house.machines.result(bombed, running)
        await house.machines.delete(bombed)
    await house.machines.delete(neighbour)
    return result(key, loud, quiet, SIDES, notes={"server's growth MB": max(growth)})


async def _p99_ms(house: House, name: str) -> float:
    taken, end = list[float](), time.monotonic() + SECONDS
    while time.monotonic() < end:
        began = time.perf_counter()
        await house.run(name, "1 + 1")
        taken.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(PAUSE_SECONDS)
    return percentile(taken, 99)
