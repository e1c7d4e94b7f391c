"""Our server as users have it: a process of its own on the real engine, with default settings; and this process as its client."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import secrets
import signal
import subprocess
import sys
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

READY_SECONDS = 120.0  # the first start of a data folder makes a template
STOP_SECONDS = 60.0
ANSWER_SECONDS = 120.0
FRAME_BYTES_MAX = 17 * 1024 * 1024


class Talk:
    """One WebSocket of ours: an instruction at a time, until its end is here."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._name = secrets.token_hex(4)
        self._numbers = itertools.count()
        self.lines = 0  # printed, and heard of

    async def run(self, code: str, timeout_seconds: float = ANSWER_SECONDS) -> str | None:
        key = f"{self._name} {next(self._numbers)}"
        instruction = {"code": code, "timeout_seconds": timeout_seconds}
        await self._connection.send(json.dumps({"type": "exec", "request_id": key, "key": key, "instruction": instruction}))
        number = -1
        while True:
            frame: dict[str, Any] = json.loads(await self._connection.recv())
            match frame["type"]:
                case "accepted" if frame["key"] == key:
                    number = frame["instruction"]
                case "error":
                    raise RuntimeError(frame["error"]["message"])
                case "output":
                    self.lines += len(frame["lines"])
                case "ended" if frame["instruction"] == number:
                    if frame["end"] != "value":
                        raise RuntimeError(frame["error"])
                    return frame["value"]
                case _:
                    pass


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    token: str
    pid: int

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}

    def post(self, path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), self.headers, method="POST")
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as response:
            return json.load(response)

    async def create(self) -> str:
        return str((await asyncio.to_thread(self.post, "/v1/machine/new", {}))["machine_name"])

    @asynccontextmanager
    async def talk(self, machine: str) -> AsyncGenerator[Talk]:
        url = f"{self.url.replace('http', 'ws', 1)}/v1/machine/{machine}/connect"
        async with connect(
            url, additional_headers=self.headers, max_size=FRAME_BYTES_MAX, compression=None, ping_interval=None, proxy=None
        ) as connection:
            await connection.recv()  # connected
            yield Talk(connection)


@asynccontextmanager
async def started(data: Path) -> AsyncGenerator[Server]:
    """From `everforge serve` until everything is asleep."""
    await asyncio.to_thread(data.mkdir, exist_ok=True)
    command = [sys.executable, "-m", "everforge.server", "serve", "--port", "0", "--data", str(data)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EVERFORGE_")}
    with (data / "log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL)
    try:
        async with asyncio.timeout(READY_SECONDS):
            url = await ready_url(process)
        yield Server(url, (data / "owner.token").read_text().strip(), process.pid)
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(STOP_SECONDS):
            await process.wait()
        end_warden(data)


def end_warden(data: Path) -> None:
    """It would wait for the next server of this folder for a while, and there is none."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if b"everforge.engine.warden" in words and str(data).encode() in words:
                os.kill(int(folder.name), signal.SIGTERM)


async def ready_url(process: asyncio.subprocess.Process) -> str:
    """From what a server prints when it answers."""
    assert process.stdout is not None
    async for line in process.stdout:
        if line.startswith(b"ready "):
            return line.split()[1].decode()
    raise RuntimeError("the server did not start; the log in its data folder says why")
