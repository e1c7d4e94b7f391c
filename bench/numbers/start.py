"""From `make run` until the first result of a new machine, with everything there that an earlier run has made."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from pathlib import Path

from bench.house import House
from bench.measure import Result, in_turns, single
from bench.service import READY_SECONDS, STOP_SECONDS, end_warden, ready_url
from everforge import AsyncEverforge

REPOSITORY = Path(__file__).parents[2]


async def measure(house: House, count: int) -> list[Result]:
    data = house.folder / "run"

    async def ours() -> float:
        return await seconds(data)

    [mine] = await in_turns(count, ours)  # the first round, which does not count, makes the template
    return [single("16", [ms / 1000 for ms in mine], "make run, create, run", unit="s")]


async def seconds(data: Path) -> float:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EVERFORGE_")}
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        "make", "run", f"ARGS=--port 0 --data {data}", cwd=REPOSITORY, env=environment, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(READY_SECONDS):
            url = await ready_url(process)
        async with AsyncEverforge(token=(data / "owner.token").read_text().strip(), base_url=url) as client:
            machine = await client.create()
            assert (await machine.run("1+1")).value == "2"
            took = time.perf_counter() - began
            await machine.delete()
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # make, its shell and the server, as Ctrl-C would
        async with asyncio.timeout(STOP_SECONDS):
            await process.communicate()
        end_warden(data)
    return took
