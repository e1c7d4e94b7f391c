"""The command line: from its start to its end, against a `python3` that does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from bench.house import House
from bench.measure import Result, in_turns, result
from bench.service import started

SECONDS_MAX = 60.0


async def measure(house: House, count: int) -> list[Result]:
    everforge = str(Path(sys.executable).with_name("everforge"))
    async with started(house.folder / "service") as server:
        environment = {**os.environ, "EVERFORGE_URL": server.url, "EVERFORGE_TOKEN": server.token}

        async def help() -> float:
            return seconds([everforge, "--help"], environment)

        async def listed() -> float:
            return seconds([everforge, "machine", "list"], environment)

        async def nothing() -> float:
            return seconds([sys.executable, "-c", "pass"], environment)

        shown, lists, plain = await in_turns(count, help, listed, nothing)
    python = "python3 -c pass"
    return [result("15-help", shown, plain, ("everforge --help", python)), result("15-list", lists, plain, ("everforge machine list", python))]


def seconds(command: list[str], environment: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, env=environment, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=SECONDS_MAX)
    return time.perf_counter() - began
