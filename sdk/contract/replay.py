"""A server that says what a transcript has it say, byte for byte, and notes whoever asks for something else. See README.md.

python replay.py [FOLDER]: prints `ready http://127.0.0.1:PORT`, and ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from websockets.frames import Opcode
from websockets.http11 import Request as Handshake
from websockets.server import ServerProtocol

from matching import problems

HEAD_BYTES_MAX = 64 * 1024
PATIENCE_SECONDS = 30.0  # for the next thing that a client should say
TOKEN = "replay.token"
STATUS_TEXTS = {200: "OK", 206: "Partial Content"}


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, Any]
    headers: dict[str, str]
    body: bytes
    head: bytes

    def described(self) -> str:
        return f"{self.method} {self.path} {self.query or ''}".rstrip()


@dataclass
class Play:
    """One transcript on its way."""

    exchanges: list[dict[str, Any]]
    problems: list[str] = field(default_factory=list[str])
    same: dict[str, str] = field(default_factory=dict[str, str])
    at: int = 0

    def next(self, is_socket: bool, what: str) -> dict[str, Any] | None:
        if self.at >= len(self.exchanges) or ("socket" in self.exchanges[self.at]) is not is_socket:
            wanted = "nothing more" if self.at >= len(self.exchanges) else json.dumps(self.exchanges[self.at].get("request") or "a WebSocket")
            self.problems.append(f"exchange {self.at}: {what} came, and {wanted} was expected")
            return None
        self.at += 1
        return self.exchanges[self.at - 1]

    def check(self, request: Request, wanted: dict[str, Any]) -> None:
        got = {"method": request.method, "path": request.path, "query": request.query, "headers": request.headers}
        found = list(problems({name: value for name, value in wanted.items() if name in got and name != "query"}, got))
        if wanted.get("query", {}) != request.query:
            found.append(f"query should be {wanted.get('query', {})}, and is {request.query}")
        if "body" in wanted:
            found += exactly(wanted["body"], _json(request.body), "body")
        if "text" in wanted and request.body.decode("utf-8", "replace") != wanted["text"]:
            found.append(f"the body should be {wanted['text']!r}, and is {request.body[:200]!r}")
        for header, name in wanted.get("same", {}).items():
            value = request.headers.get(header, "")
            if not value or self.same.setdefault(name, value) != value:
                found.append(f"{header} should be the same as before, {self.same.get(name)!r}, and is {value!r}")
        if request.headers.get("authorization") != f"Bearer {TOKEN}" and not wanted.get("stranger"):
            found.append("there is no token, or another one")
        self.problems += [f"exchange {self.at - 1} ({request.described()}): {one}" for one in found]

    def verdict(self) -> dict[str, Any]:
        left = len(self.exchanges) - self.at
        found = [*self.problems, *([f"{left} exchanges were never asked for"] if left else [])]
        return {"ok": not found, "problems": found[:20]}


def exactly(wanted: Any, got: Any, at: str) -> list[str]:
    """As `problems`, and nothing beside it: a request has the fields that it should, and no others."""
    found = list(problems(wanted, got, at))
    if isinstance(wanted, dict) and isinstance(got, dict) and not any(name.startswith("$") for name in wanted):
        found += [f"{at}.{name} should not be there" for name in got if name not in wanted]
        for name in wanted:
            if isinstance(wanted[name], dict) and isinstance(got.get(name), dict):
                found += [one for one in exactly(wanted[name], got[name], f"{at}.{name}") if one not in found]
    return found


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


class Server:
    def __init__(self, transcripts: dict[str, dict[str, Any]]) -> None:
        self._transcripts = transcripts
        self._plays = {name: Play(found["exchanges"]) for name, found in transcripts.items()}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Cancelled: of a client that keeps its connection until the very end.
        with suppress(OSError, asyncio.IncompleteReadError, TimeoutError, asyncio.LimitOverrunError, asyncio.CancelledError):
            while (request := await read_request(reader)) is not None:
                if not await self._answer(request, reader, writer):
                    break
        writer.transport.abort() if writer.transport.is_closing() else writer.close()

    async def _answer(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """May the connection be used again?"""
        _, first, rest = (*request.path.split("/", 2), "")[:3]
        if first == "verdict":
            return await write_answer(writer, 200, {}, json.dumps(self._plays[rest].verdict()).encode())
        if first == "again":
            self._plays[rest] = Play(self._transcripts[rest]["exchanges"])
            return await write_answer(writer, 200, {}, b"{}")
        play = self._plays.get(first)
        if play is None:
            return await write_answer(writer, 404, {}, b"")
        request.path = "/" + rest
        if "upgrade" in request.headers:
            await SocketPlay(play, request, reader, writer).run()
            return False
        exchange = play.next(False, request.described())
        if exchange is None:
            return await write_answer(writer, 418, {}, b"the transcript has nothing for this")
        play.check(request, exchange["request"])
        return await self._say(writer, exchange["answer"])

    async def _say(self, writer: asyncio.StreamWriter, answer: dict[str, Any]) -> bool:
        if answer.get("cut"):
            writer.transport.abort()
            return False
        headers = answer.get("headers", {})
        if "lines" not in answer:
            body = answer["text"].encode() if "text" in answer else json.dumps(answer.get("body", {})).encode()
            return await write_answer(writer, answer["status"], headers, body)
        head = {"content-type": "application/x-ndjson", "transfer-encoding": "chunked", **headers}
        writer.write(_head(answer["status"], head))
        for line in answer["lines"]:
            data = (line if isinstance(line, str) else json.dumps(line) + "\n").encode()
            writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await writer.drain()
        if answer.get("then") == "cut":
            await asyncio.sleep(0.05)  # what was said is on its way: a reset would overtake it
            writer.close()
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


class SocketPlay:
    """One WebSocket of a transcript."""

    def __init__(self, play: Play, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._play, self._request, self._reader, self._writer = play, request, reader, writer
        self._protocol = ServerProtocol(max_size=None)
        self._heard: list[Any] = []
        self._request_id: Any = None  # of what was heard last

    async def run(self) -> None:
        exchange = self._play.next(True, f"a WebSocket for {self._request.path}")
        if exchange is None:
            await write_answer(self._writer, 418, {}, b"the transcript has no WebSocket here")
            return
        wanted = dict(exchange["socket"])
        query = dict(self._request.query)
        if query.pop("_forevervm_jwt", None) == TOKEN:  # as browsers have to
            self._request.headers["authorization"] = f"Bearer {TOKEN}"
        self._request.query = query
        self._play.check(self._request, {"method": "GET", **wanted})
        if "refuse" in exchange:
            await write_answer(
                self._writer, exchange["refuse"]["status"], exchange["refuse"].get("headers", {}), json.dumps(exchange["refuse"]["body"]).encode()
            )
            return
        self._protocol.receive_data(self._request.head)
        for event in self._protocol.events_received():
            assert isinstance(event, Handshake)
            response = self._protocol.accept(event)
            response.headers["X-Everforge-Version"] = exchange.get("version", "")
            self._protocol.send_response(response)
        await self._flush()
        for step in exchange["then"]:
            if not await self._step(step):
                return
        await self._until_gone()

    async def _step(self, step: dict[str, Any]) -> bool:
        if "say" in step:
            text = json.dumps(self._filled(step["say"]))
            self._protocol.send_text(text.encode())
            await self._flush()
        elif "hear" in step:
            got = await self._hear()
            if got is None:
                self._play.problems.append(f"exchange {self._play.at - 1}: the WebSocket ended, and {json.dumps(step['hear'])} was expected")
                return False
            self._note(step["hear"], got)
        elif step.get("cut"):
            await asyncio.sleep(0.05)
            self._writer.close()
            return False
        elif "close" in step:
            self._protocol.send_close(*step["close"])
            await self._flush()
            await self._until_gone()
            return False
        return True

    def _note(self, wanted: dict[str, Any], got: dict[str, Any]) -> None:
        pattern = {name: value for name, value in wanted.items() if name != "same"}
        found = exactly({**pattern, "request_id": {"$any": True}, **{name: {"$any": True} for name in wanted.get("same", {})}}, got, "frame")
        for name, kept in wanted.get("same", {}).items():
            if self._play.same.setdefault(kept, got.get(name)) != got.get(name):
                found.append(f"{name} should be the same as before")
        self._request_id = got.get("request_id")
        self._play.problems += [f"exchange {self._play.at - 1}: {one}" for one in found]

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._filled(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self._filled(one) for one in value]
        if isinstance(value, str) and value.startswith("${"):
            return self._request_id if value == "${request_id}" else self._play.same.get(value[2:-1], value)
        return value

    async def _hear(self) -> Any:
        while not self._heard:
            async with asyncio.timeout(PATIENCE_SECONDS):
                data = await self._reader.read(65536)
            if not data:
                return None
            self._protocol.receive_data(data)
            for event in self._protocol.events_received():
                if getattr(event, "opcode", None) == Opcode.TEXT:
                    self._heard.append(json.loads(event.data))
            await self._flush()
        return self._heard.pop(0)

    async def _until_gone(self) -> None:
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not self._protocol.close_expected() and (data := await self._reader.read(65536)):
                    self._protocol.receive_data(data)
                    self._protocol.events_received()
                    await self._flush()

    async def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._writer.write(data)
        await self._writer.drain()


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    parts = urlsplit(target)
    query: dict[str, Any] = {
        name: values[0] if len(values) == 1 else values for name, values in parse_qs(parts.query, keep_blank_values=True).items()
    }
    return Request(method, unquote(parts.path), query, headers, await _body(reader, headers), head)


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    parts: list[bytes] = []
    while size := int((await reader.readline()).strip() or b"0", 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readline()
    return b"".join(parts)


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {STATUS_TEXTS.get(status, 'As It Is')}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join((*lines, "", "")).encode("latin-1")


async def write_answer(writer: asyncio.StreamWriter, status: int, headers: dict[str, str], body: bytes) -> bool:
    writer.write(_head(status, {"content-type": "application/json", "content-length": str(len(body)), **headers}) + body)
    await writer.drain()
    return True


def load(folder: Path) -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


async def main(folder: Path, tell: Callable[[str], None]) -> None:
    made = Server(load(folder))
    listening = await asyncio.start_server(made.serve, "127.0.0.1", 0, limit=HEAD_BYTES_MAX)
    tell(f"ready http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    here = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "transcripts"
    asyncio.run(main(here, lambda line: print(line, flush=True)))
