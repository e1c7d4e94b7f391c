"""Many Jupyter kernels behind a Jupyter server, what one would take instead of our server."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

READY_SECONDS = 60.0
STOP_SECONDS = 60.0


class Notebook:
    """The WebSocket of one kernel: a cell at a time, until the kernel is idle again."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._session = secrets.token_hex(8)

    async def run(self, code: str) -> None:
        id = secrets.token_hex(8)
        header = {"msg_id": id, "msg_type": "execute_request", "session": self._session, "username": "", "version": "5.3", "date": ""}
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell", "buffers": []}
        await self._connection.send(json.dumps(message))
        while True:
            frame: dict[str, Any] = json.loads(await self._connection.recv())
            if frame["parent_header"].get("msg_id") == id and frame["content"].get("execution_state") == "idle":
                return


@asynccontextmanager
async def notebooks(count: int, folder: Path) -> AsyncGenerator[list[Notebook]]:
    """So many kernels, each with its WebSocket."""
    async with _server(folder) as (url, token), AsyncExitStack() as opened:
        found: list[Notebook] = []
        for _ in range(count):
            kernel = (await asyncio.to_thread(_post, f"{url}api/kernels", token))["id"]
            address = f"{url.replace('http', 'ws', 1)}api/kernels/{kernel}/channels?token={token}"
            connection = await opened.enter_async_context(connect(address, compression=None, ping_interval=None, max_size=None, proxy=None))
            found.append(Notebook(connection))
        async with asyncio.timeout(READY_SECONDS * 4):
            for notebook in found:
                await notebook.run("None")
        yield found


@asynccontextmanager
async def _server(folder: Path) -> AsyncGenerator[tuple[str, str]]:
    await asyncio.to_thread(folder.mkdir, exist_ok=True)
    token = secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyter_server", "--allow-root", "--no-browser", "--port=0", f"--ServerApp.root_dir={folder}"]
    environment = {**os.environ, "JUPYTER_TOKEN": token, "JUPYTER_RUNTIME_DIR": str(folder), "JUPYTER_CONFIG_DIR": str(folder)}
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        async with asyncio.timeout(READY_SECONDS):
            url = await _url(folder / f"jpserver-{process.pid}.json")
        yield url, token
    finally:
        process.terminate()  # which ends its kernels, too
        async with asyncio.timeout(STOP_SECONDS):
            await process.wait()


async def _url(file: Path) -> str:
    """From what it writes down when it listens; nothing else tells."""
    while True:
        try:
            return json.loads(await asyncio.to_thread(file.read_text))["url"]
        except (FileNotFoundError, ValueError):
            await asyncio.sleep(0.05)


def _post(url: str, token: str) -> Any:
    """Its file is there a moment before it listens."""
    request = urllib.request.Request(url, b"{}", {"Authorization": f"token {token}", "Content-Type": "application/json"}, method="POST")
    until = time.monotonic() + READY_SECONDS
    while True:
        try:
            with urllib.request.urlopen(request, timeout=READY_SECONDS) as response:
                return json.load(response)
        except urllib.error.URLError as e:
            if not isinstance(e.reason, ConnectionRefusedError) or time.monotonic() > until:
                raise
            time.sleep(0.05)
