"""ForeverVM's API as plain HTTP and WebSocket clients see it: bytes and JSON, no client of ours in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import httpx2
from websockets.asyncio.client import ClientConnection, connect

PATIENCE_SECONDS = 20.0
FRAME_BYTES_MAX = 16 * 1024 * 1024  # what tungstenite, the Rust client's library, takes


class Served(Protocol):
    @property
    def url(self) -> str: ...
    @property
    def token(self) -> str: ...


class Http:
    """The calls of one client, each with its answer as it came."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client

    async def json(self, method: str, path: str, body: Any = None) -> Any:
        answer = await self.client.request(method, path, **({} if body is None else {"json": body}))
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def new(self, **wanted: Any) -> str:
        return (await self.json("POST", "/v1/machine/new", wanted))["machine_name"]

    async def list(self, **query: Any) -> list[Any]:
        return (await self.json("POST", "/v1/machine/list", query))["machines"]

    async def exec(self, machine: str, code: str, *, interrupt: bool = False, **instruction: Any) -> Any:
        body = {"instruction": {"code": code, **instruction}, "interrupt": interrupt}
        return await self.json("POST", f"/v1/machine/{machine}/exec", body)

    async def end(self, machine: str, seq: int) -> dict[str, Any]:
        return (await self.json("GET", f"/v1/machine/{machine}/exec/{seq}/result"))["result"]

    async def run(self, machine: str, code: str, **instruction: Any) -> dict[str, Any]:
        return await self.end(machine, (await self.exec(machine, code, **instruction))["instruction_seq"])

    async def stream(self, machine: str, seq: int) -> bytes:
        answer = await self.client.get(f"/v1/machine/{machine}/exec/{seq}/stream-result")
        assert answer.status_code == 200, answer.text
        return answer.content

    async def said(self, machine: str, seq: int) -> list[Any]:
        return [json.loads(line) for line in (await self.stream(machine, seq)).splitlines()]

    async def chunks(self, machine: str, code: str) -> list[Any]:
        """What an instruction prints, as it is streamed."""
        accepted = await self.exec(machine, code)
        return [m["chunk"] for m in await self.said(machine, accepted["instruction_seq"]) if m["type"] == "output"]


@asynccontextmanager
async def http(served: Served, token: str | None = None) -> AsyncGenerator[Http]:
    headers = {"authorization": f"Bearer {token or served.token}", "x-forevervm-sdk": "javascript"}
    async with httpx2.AsyncClient(base_url=served.url, headers=headers, timeout=PATIENCE_SECONDS) as client:
        yield Http(client)


class Repl:
    """One WebSocket; keeps every frame that came, as it came."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.heard: list[Any] = []

    async def receive(self) -> Any:
        async with asyncio.timeout(PATIENCE_SECONDS):
            frame = await self.socket.recv()
        assert isinstance(frame, str), "text frames only"
        self.heard.append(json.loads(frame))
        return self.heard[-1]

    async def send(self, code: Any, request_id: Any = 0, **instruction: Any) -> None:
        await self.socket.send(json.dumps({"type": "exec", "instruction": {"code": code, **instruction}, "request_id": request_id}))

    async def until(self, type: str) -> Any:
        while (message := await self.receive())["type"] != type:
            pass
        return message

    async def run(self, code: Any, request_id: Any = 0, **instruction: Any) -> list[Any]:
        """Everything that is said about an instruction, to its result."""
        before = len(self.heard)
        await self.send(code, request_id, **instruction)
        await self.until("result")
        return self.heard[before:]


@asynccontextmanager
async def repl(served: Served, machine: str = "new", token: str | None = None) -> AsyncGenerator[Repl]:
    """As a client is who has read the first frame."""
    async with socket(served, f"/v1/machine/{machine}/repl", token=token or served.token) as opened:
        found = Repl(opened)
        assert (await found.receive())["type"] == "connected"
        yield found


@asynccontextmanager
async def socket(served: Served, path: str, *, token: str | None = None, **options: Any) -> AsyncGenerator[ClientConnection]:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    address = served.url.replace("http://", "ws://") + path
    async with connect(address, additional_headers=headers, max_size=FRAME_BYTES_MAX, ping_interval=None, **options) as opened:
        yield opened
