"""What is written together goes out together, in its order, and before the connection ends."""

from __future__ import annotations

import asyncio
import contextlib
import json

import httpx2
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from kit.service import service


async def test_an_answer_comes_in_one_piece() -> None:
    async with service() as s:
        host, port = s.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        for _ in range(20):
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            head, _, body = (await reader.read(65_536)).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            assert json.loads(body)
        writer.close()


async def test_a_file_that_looks_like_an_answer_is_a_file() -> None:
    forged = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nx-forged: yes\r\ncontent-length: 5\r\n\r\nhello"
    async with service() as s, httpx2.AsyncClient(base_url=s.url, headers=s.headers) as client:
        await client.post("/v1/machine/new", json={"name": "m"})
        assert (await client.put("/v1/machine/m/files/a", content=forged, headers={"Expect": "100-continue"})).status_code == 200
        for _ in range(2):
            got = await client.get("/v1/machine/m/files/a")
            assert (got.status_code, got.content, "x-forged" in got.headers) == (200, forged, False)


async def test_answers_without_a_body_and_refusals_in_the_middle_of_a_request_are_answers_too() -> None:
    async with service() as s, httpx2.AsyncClient(base_url=s.url) as client:
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.head("/healthz")).status_code in (200, 405)
        assert (await client.get("/v1/whoami")).status_code == 401
        assert (await client.put("/v1/machine/m/files/a", content=b"x" * 100_000)).status_code == 401


async def test_the_last_frames_come_before_the_end_of_the_connection() -> None:
    async with service() as s, connect(f"{s.ws}/v1/machine/new/connect?after=-1", additional_headers=s.headers) as socket:
        await socket.send(json.dumps({"type": "exec", "instruction": {"code": "1"}, "request_id": 1}))
        await socket.send(json.dumps({"type": "no such type"}))
        seen: list[str] = []
        with contextlib.suppress(ConnectionClosed):
            while True:
                seen.append(json.loads(await socket.recv())["type"])
        assert seen[0] == "connected"
        assert "reply" in seen
        assert socket.close_code == 1008
