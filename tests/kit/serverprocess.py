"""The client's end of kit.server: start it, call it, kill it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from kit.folders import strangers
from kit.real import give_template, processes_of

TESTS = Path(__file__).parent.parent


class Died(Exception):
    """The server went away before it answered."""


class Refusal(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class ServerProcess:
    def __init__(self, data: Path, *, prefix: tuple[str, ...] = (), **env: str) -> None:
        self.data = data
        self._prefix = prefix
        self._env = env
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._next = 1
        self._reader: asyncio.Task[None] | None = None
        self.log = data.parent / f"{data.name}.server.log"

    async def spawn(self) -> ServerProcess:
        """The process, with all its modules loaded; it touches nothing before `start`. For whoever will need one soon."""
        env = {**os.environ, "PYTHONPATH": str(TESTS), **self._env}
        with open(self.log, "ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *self._prefix,
                sys.executable,
                "-m",
                "kit.server",
                str(self.data),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=env,
                limit=2**26,
            )
        return self

    async def start(self) -> ServerProcess:
        give_template(self.data)
        if not hasattr(self, "process"):
            await self.spawn()
        assert self.process.stdin is not None
        self.process.stdin.write(b"start\n")
        ready = self._waiting[0] = asyncio.get_running_loop().create_future()
        self._reader = asyncio.create_task(self._read())
        try:
            async with asyncio.timeout(60):
                await ready
        except (Died, TimeoutError) as e:
            raise Died(f"the server did not start: {self.log.read_text()[-2000:]}") from e
        return self

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            said = json.loads(line)
            future = self._waiting.pop(said["id"], None)
            if future is None or future.done():
                continue
            if "error" in said:
                future.set_exception(Refusal(*said["error"]))
            else:
                future.set_result(said["value"])
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(Died())
                future.exception()

    async def call(self, verb: str, **args: Any) -> Any:
        assert self.process.stdin is not None
        number, self._next = self._next, self._next + 1
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self.process.stdin.write(json.dumps({"id": number, "call": verb, "args": args}).encode() + b"\n")
            await self.process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            raise Died from None
        if self._reader is not None and self._reader.done():
            raise Died
        try:
            async with asyncio.timeout(120):
                return await future
        except asyncio.CancelledError:
            self._drop(number)
            raise

    def _drop(self, number: int) -> None:
        """Its caller goes away, and the server hears of it."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, RuntimeError):
            self.process.stdin.write(json.dumps({"drop": number}).encode() + b"\n")

    async def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        await self._ended()

    async def stop(self) -> None:
        """Orderly: it hibernates its machines."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(60):
            await self._ended()

    async def wait_dead(self) -> None:
        async with asyncio.timeout(60):
            await self._ended()

    async def _ended(self) -> None:
        await self.process.wait()
        if self._reader is not None:
            await self._reader


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
