"""Clients that keep no rules: bytes to a server as they are, and what it answers."""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import httpx2

from .service import Running

PATIENCE_SECONDS = 60.0  # for what must come; a busy computer takes its time
HANDSHAKE = "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
TEXT, BINARY, CLOSE, PING = 0x1, 0x2, 0x8, 0x9


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Wild:
    """One connection. `small` takes in next to nothing before it is read: whoever writes to it feels at once that nobody does."""

    running: Running
    small: bool = False
    buffer: bytes = b""
    socket: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        url = urlsplit(self.running.url)
        self.socket = socket.socket()
        if self.small:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(PATIENCE_SECONDS)
        self.socket.connect((url.hostname or "", url.port or 0))

    def __enter__(self) -> Wild:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def pour(self, data: bytes, most: int) -> int:
        """As much as it takes, up to `most` bytes: how much that was when it took no more for a while, or cut the connection."""
        self.socket.settimeout(1.0)
        sent = 0
        try:
            while sent < most:
                sent += self.socket.send(data)
        except OSError:
            pass
        self.socket.settimeout(PATIENCE_SECONDS)
        return sent

    def more(self) -> bytes:
        """Empty at the end, which may be a rude one."""
        try:
            return self.socket.recv(65_536)
        except ConnectionError:
            return b""

    def rest(self) -> bytes:
        """Everything until the server closes."""
        found = self.buffer
        while piece := self.more():
            found += piece
        return found

    def until(self, mark: bytes) -> bytes:
        while mark not in self.buffer:
            piece = self.more()
            if not piece:
                raise EOFError(self.buffer)
            self.buffer += piece
        found, _, self.buffer = self.buffer.partition(mark)
        return found

    def exactly(self, count: int) -> bytes:
        while len(self.buffer) < count:
            piece = self.more()
            if not piece:
                raise EOFError(self.buffer)
            self.buffer += piece
        found, self.buffer = self.buffer[:count], self.buffer[count:]
        return found

    def answer(self, *, body: bool = True) -> Answer:
        lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        length = int(headers.get("content-length", 0)) if body else 0
        return Answer(int(lines[0].split()[1]), headers, self.exactly(length))

    # --- WebSockets ------------------------------------------------------------------------------------------------------------------------

    def upgrade(self, path: str) -> Answer:
        self.send(HANDSHAKE.format(path=path, token=self.running.token).encode())
        return self.answer()

    def frame(self, kind: int, payload: bytes = b"", *, last: bool = True) -> None:
        self.send(frame(kind, payload, last=last))

    def close_code(self) -> int:
        """Of the close frame that comes, behind whatever else."""
        while True:
            first, second = self.exactly(2)
            size = second & 0x7F
            if size > 125:
                size = int.from_bytes(self.exactly(2 if size == 126 else 8), "big")
            payload = self.exactly(size)
            if first & 0xF == CLOSE:
                return int.from_bytes(payload[:2], "big")


def frame(kind: int, payload: bytes = b"", *, last: bool = True) -> bytes:
    size = len(payload)
    head = bytes([kind | (0x80 if last else 0)])
    head += bytes([0x80 | size]) if size < 126 else b"\xfe" + struct.pack("!H", size) if size < 65_536 else b"\xff" + struct.pack("!Q", size)
    return head + b"\0\0\0\0" + payload  # a mask that changes nothing


def request(
    method: str, path: str, running: Running | None = None, body: bytes = b"", headers: Mapping[str, str] | None = None, **more: str
) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    if running is not None:
        lines.append(f"Authorization: Bearer {running.token}")
    if body:
        lines.append(f"Content-Length: {len(body)}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in {**(headers or {}), **more}.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


class Neighbour:
    """Somebody who does nothing wrong, on a connection of their own: a trivial instruction must be answered whatever others do."""

    def __init__(self, running: Running) -> None:
        self._client = httpx2.Client(base_url=running.url, headers=running.headers, timeout=PATIENCE_SECONDS)
        self.name: str = self._client.post("/v1/machine/new").json()["machine_name"]
        self.is_served()

    def run(self, code: str) -> Any:
        seq = self._client.post(f"/v1/machine/{self.name}/exec", json={"instruction": {"code": code, "timeout_seconds": 60}}).json()[
            "instruction_seq"
        ]
        return self._client.get(f"/v1/machine/{self.name}/exec/{seq}/result").json()["result"]

    def is_served(self) -> None:
        assert self.run("6 * 7")["value"] == "42"

    def close(self) -> None:
        self._client.close()


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
