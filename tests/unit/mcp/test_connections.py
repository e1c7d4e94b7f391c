"""Connections over HTTP that come slowly or without end, from whoever likes, and what is not written down."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx2
import pytest

from everforge.mcp import connections
from kit.mcpserving import WAIT_SECONDS, command, environment, over_http
from kit.service import Running

from .test_http import BEGIN, PING, headers

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def connected(url: str) -> AsyncGenerator[Streams]:
    address = httpx2.URL(url)
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        yield reader, writer
    finally:
        writer.close()


def head(token: str, length: int) -> bytes:
    lines = [f"{name}: {value}" for name, value in headers(token, Host="127.0.0.1", Content_Length=str(length)).items()]
    return ("POST /mcp HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n").encode()


@pytest.mark.parametrize("sent", ["nothing", "half a head", "half a body"])
async def test_a_request_that_does_not_come_to_an_end_is_refused(sent: str, server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.5)
    whole = head(server.token, 100) + b'{"jsonrpc"'
    async with over_http(server.url) as url, connected(url) as (reader, writer):
        writer.write({"nothing": b"", "half a head": whole[:40], "half a body": whole}[sent])
        async with asyncio.timeout(WAIT_SECONDS):
            said = await reader.read()
        assert said.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert json.loads(said.split(b"\r\n\r\n")[1])["error"] == "TooSlow"


async def test_who_was_answered_already_and_goes_on_sending_is_cut_without_a_second_answer(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.5)
    async with over_http(server.url) as url, connected(url) as (reader, writer):
        writer.write(head("ef-nobody", 100) + b"{")
        async with asyncio.timeout(WAIT_SECONDS):
            said = await reader.read()
        assert (said[:12], said.count(b"HTTP/1.1")) == (b"HTTP/1.1 401", 1)


async def test_an_answer_may_take_longer_than_its_request_and_the_connection_serves_the_next(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.5)
    asked = {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "tools/call",
        "params": {"name": "run_python", "arguments": {"code": "hang()", "timeout_seconds": 2}},
    }
    async with over_http(server.url) as url, httpx2.AsyncClient(timeout=WAIT_SECONDS) as http:
        session = (await http.post(url, headers=headers(server.token), json=BEGIN)).headers["mcp-session-id"]
        said = await http.post(url, headers=headers(server.token, mcp_session_id=session), json=asked)
        assert "timed_out" in said.text
        assert (await http.post(url, headers=headers(server.token, mcp_session_id=session), json=PING)).status_code == 200


async def test_headers_without_end_are_not_held(server: Running) -> None:
    async with over_http(server.url) as url, connected(url) as (reader, writer):
        writer.write(b"POST /mcp HTTP/1.1\r\nX-Long: ")
        async with asyncio.timeout(WAIT_SECONDS):
            said = asyncio.create_task(reader.read())
            with suppress(ConnectionError):
                for _ in range(10_000):
                    writer.write(b"x" * 10_000)
                    await writer.drain()
                    if said.done():
                        break
            with suppress(ConnectionError):
                assert (await said).startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")


async def test_one_token_does_not_take_the_sessions_of_all(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everforge.mcp.sessions.SESSIONS_OF_TOKEN_MAX", 2)
    other = await server.account("other")
    async with over_http(server.url) as url, httpx2.AsyncClient() as http:
        said = [await http.post(url, headers=headers(server.token), json=BEGIN) for _ in range(3)]
        assert [answer.status_code for answer in said] == [200, 200, 503]
        assert (await http.post(url, headers=headers(other), json=BEGIN)).status_code == 200
        await http.delete(url, headers=headers(server.token, mcp_session_id=said[0].headers["mcp-session-id"]))
        assert (await http.post(url, headers=headers(server.token), json=BEGIN)).status_code == 200


async def test_no_token_and_no_code_gets_into_the_log(server: Running, home: Path) -> None:
    process = subprocess.Popen(
        command("--http", "--port", "0"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(server.url, "")
    )  # fmt: skip
    try:
        assert process.stdout is not None
        url = (await asyncio.to_thread(process.stdout.readline)).removeprefix("ready ").strip()
        other = await server.account("other")
        async with httpx2.AsyncClient(timeout=WAIT_SECONDS) as http:
            begun = await http.post(url, headers=headers(server.token), json=BEGIN)
            session = begun.headers["mcp-session-id"]
            bodies = (PING, {"secret_code": 1}, {**PING, "params": {"secret_code": "x"}}, {**PING, "method": "secret_code"})
            for token, body in [(token, body) for token in (server.token, other, "ef-wrong", "wrong token") for body in bodies]:
                for more in ({}, {"mcp_session_id": session}, {"mcp_protocol_version": "2026-07-28"}, {"Host": "evil.example"}):
                    assert (await http.post(url, headers=headers(token, **more), json=body)).status_code < 500
            await http.post(url, headers=headers(server.token, mcp_session_id=session), content=b"{ secret_code")
        process.terminate()
        out, err = await asyncio.to_thread(process.communicate, timeout=WAIT_SECONDS)
        assert out == ""
        for word in (server.token, other, "ef-wrong", "wrong token", "secret_code", "Traceback"):
            assert word not in err
    finally:
        process.kill()
        process.wait()
