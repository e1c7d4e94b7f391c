"""A whole server on the engine of tests, in a process of its own: reached over HTTP, ready in a second, and no root needed.

with fake_server() as server:
    server.url, server.token
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

START_SECONDS = 60.0
STOP_SECONDS = 30.0
INSTRUCTION_SECONDS = 120.0  # nothing that hangs there ends by itself while a test looks at it,
IDLE_SECONDS = 3600.0  # and nothing falls asleep
READY = "ready "


@dataclass(frozen=True)
class FakeServer:
    url: str
    token: str


@contextlib.contextmanager
def fake_server() -> Iterator[FakeServer]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("EVERFORGE_", "FOREVERVM_"))}
    env = {**kept, "PYTHONPATH": str(Path(__file__).parents[1])}
    words = [sys.executable, "-m", "kit.fakeserver"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
    try:
        yield FakeServer(*_ready(process))
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _ready(process: subprocess.Popen[str]) -> list[str]:
    """A server that says nothing is killed, so that this ends."""
    assert process.stdout is not None
    late = threading.Timer(START_SECONDS, process.kill)
    late.start()
    line = process.stdout.readline()
    late.cancel()
    assert line.startswith(READY), "the server did not become ready"
    return line.removeprefix(READY).split()


async def main() -> None:
    """Until standard input ends."""
    from everforge.audit.settings import AuditSettings
    from kit.house import QUICK
    from kit.service import service

    quick = replace(QUICK, timeout_seconds=INSTRUCTION_SECONDS, idle_seconds=IDLE_SECONDS)
    at_once = AuditSettings(audit_flush_seconds=0.001)  # so that who asks for the log finds what was just done
    async with service(machines=quick, audit=at_once) as running:
        print(f"{READY}{running.url} {running.token}", flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
