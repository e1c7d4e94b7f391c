"""What the scenario of the contract needs around it: a real server, a wire that can be cut by a request, and an address where nobody listens."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kit.loopback import Quiet, listening
from kit.proxy import Proxy, proxy

LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"


@dataclass(frozen=True)
class Ground:
    url: str  # the wire
    token: str
    control: str
    dead_url: str

    def variables(self) -> dict[str, Any]:
        run = "".join(secrets.choice(LETTERS) for _ in range(8))
        return {"url": self.url, "token": self.token, "control": self.control, "dead_url": self.dead_url, "run": run}


class Wire:
    """The proxy, in a thread with a loop of its own: whoever uses it may block."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    async def _run(self) -> None:
        async with proxy(self._target) as self._proxy:
            self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
            self._ready.set()
            await self._end.wait()

    def start(self) -> Proxy:
        self._thread.start()
        assert self._ready.wait(10)
        return self._proxy

    def cut(self) -> None:
        asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result(10)

    async def _cut(self) -> None:
        self._proxy.cut()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(10)


@contextmanager
def controls(wire: Wire) -> Iterator[str]:
    """`GET /cut`, from a page of any origin, too."""

    class Handler(Quiet):
        def do_GET(self) -> None:
            wire.cut()
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Content-Length", "0")
            self.end_headers()

    with listening(Handler) as url:
        yield url


@contextmanager
def ground(url: str, token: str) -> Iterator[Ground]:
    """Around a server that runs already."""
    wire = Wire(url)
    try:
        with controls(wire) as control, nobody() as dead_url:
            yield Ground(wire.start().url, token, control, dead_url)
    finally:
        wire.stop()


@contextmanager
def nobody() -> Iterator[str]:
    """A port that is taken, and where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
