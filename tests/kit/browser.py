"""A page in headless Chromium, spoken to over its own protocol: nothing but a WebSocket is needed for that."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

from kit.loopback import Quiet, listening

CHROMIUM = shutil.which("chromium") or ""
needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="needs chromium, which tools/setup --tests installs")
START_SECONDS = 60
END_SECONDS = 20
# It stays on this computer, and asks nobody anything by itself.
SILENT = (
    "--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--disable-extensions", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-port=0",
)  # fmt: skip


class Page:
    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._calls = 0

    def evaluate(self, expression: str, seconds: float) -> Any:
        """The value of an expression, or of the promise that it is, as JSON."""
        given = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        found = self.call("Runtime.evaluate", given, seconds)
        assert "exceptionDetails" not in found, json.dumps(found["exceptionDetails"])[:2000]
        return found["result"].get("value")

    def call(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        self._calls += 1
        self._socket.send(json.dumps({"id": self._calls, "method": method, "params": params}))
        deadline = time.monotonic() + seconds
        while True:
            message = json.loads(self._socket.recv(timeout=max(0.0, deadline - time.monotonic())))
            if message.get("id") == self._calls:
                assert "error" not in message, message
                return message["result"]

    def outcome(self, given: dict[str, Any], seconds: float) -> dict[str, Any]:
        """What the script of the page makes of it: it has put a function `run` there."""
        return self.evaluate(f"window.run({json.dumps(given)})", seconds)


@contextmanager
def page(script: Path, folder: Path, *flags: str) -> Iterator[Page]:
    """An empty page with one script, from a server of its own: another origin than that of any server under test. `flags` are Chromium's."""
    shutil.copy(script, folder / "script.js")
    (folder / "index.html").write_text('<!doctype html><meta charset="utf-8"><title>-</title><script type="module" src="script.js"></script>')
    with (
        listening(partial(_Pages, directory=str(folder))) as url,
        _chromium(folder / "profile", f"{url}/index.html", flags) as address,
        connect(address, max_size=None, open_timeout=START_SECONDS) as socket,
    ):
        opened = Page(socket)
        deadline = time.monotonic() + START_SECONDS
        while opened.evaluate("typeof window.run", START_SECONDS) != "function":
            assert time.monotonic() < deadline, "the script of the page did not run"
            time.sleep(0.05)
        yield opened


class _Pages(Quiet, SimpleHTTPRequestHandler):
    pass


@contextmanager
def _chromium(profile: Path, url: str, flags: Sequence[str]) -> Iterator[str]:
    """The address of its first page's protocol."""
    as_root = ["--no-sandbox"] if os.getuid() == 0 else []
    command = [CHROMIUM, *SILENT, *as_root, *flags, f"--user-data-dir={profile}", url]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield _address(process, profile)
    finally:
        _end(process)
        shutil.rmtree(profile, ignore_errors=True)


def _end(process: subprocess.Popen[str]) -> None:
    """With all that it started."""
    process.terminate()
    try:
        process.wait(END_SECONDS)
    finally:
        deadline = time.monotonic() + END_SECONDS
        with suppress(ProcessLookupError):
            while time.monotonic() < deadline:
                os.killpg(process.pid, signal.SIGKILL)
                process.poll()
                time.sleep(0.02)


def _address(process: subprocess.Popen[str], profile: Path) -> str:
    lines: queue.Queue[str] = queue.Queue()
    output = process.stderr
    assert output is not None

    def read() -> None:
        for line in output:
            lines.put(line)

    threading.Thread(target=read, daemon=True).start()
    deadline = time.monotonic() + START_SECONDS
    while True:
        line = lines.get(timeout=max(0.0, deadline - time.monotonic()))
        if "DevTools listening on ws://" in line:
            host = line.split("ws://", 1)[1].split("/", 1)[0]
            return _first_page(host)


def _first_page(host: str) -> str:
    import urllib.request

    deadline = time.monotonic() + START_SECONDS
    while True:
        with urllib.request.urlopen(f"http://{host}/json/list", timeout=START_SECONDS) as answer:
            pages = [one for one in json.load(answer) if one["type"] == "page"]
        if pages:
            return pages[0]["webSocketDebuggerUrl"]
        assert time.monotonic() < deadline, "the browser has no page"
        time.sleep(0.05)
