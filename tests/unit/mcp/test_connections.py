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


@pytest.mark.parametrize("more", [b"X-Long: " + b"x" * 70_000, b"\r\n".join(b"X-%d: %b" % (n, b"x" * 700) for n in range(100))])
async def test_a_head_that_is_too_long_is_refused_also_when_it_comes_at_once(more: bytes, server: Running) -> None:
    whole = head(server.token, 2).replace(b"\r\n\r\n", b"\r\n" + more + b"\r\n\r\n{}")
    async with over_http(server.url) as url, connected(url) as (reader, writer):
        writer.write(whole)
        async with asyncio.timeout(WAIT_SECONDS):
            said = await reader.read()
        assert said.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
        assert said.count(b"HTTP/1.1") == 1


async def test_a_head_that_just_fits_and_a_body_that_is_longer_than_any_head_are_taken(server: Running) -> None:
    body = json.dumps({**BEGIN, "params": {**BEGIN["params"], "_meta": {"x": "x" * 200_000}}}).encode()
    whole = head(server.token, len(body)).replace(b"\r\n\r\n", b"\r\nX-Long: " + b"x" * 64_000 + b"\r\nConnection: close\r\n\r\n")
    async with over_http(server.url) as url, connected(url) as (reader, writer):
        writer.write(whole + body)
        async with asyncio.timeout(WAIT_SECONDS):
            assert (await reader.read()).startswith(b"HTTP/1.1 200 ")


async def test_headers_behind_a_body_are_not_held_either(server: Running) -> None:
    begun = head(server.token, 0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n"
    async with over_http(server.url) as url, connected(url) as (reader, writer):
        writer.write(begun)
        async with asyncio.timeout(WAIT_SECONDS):
            said = asyncio.create_task(reader.read())
            sent = 0
            with suppress(ConnectionError):
                while not said.done():
                    sent += 1
                    writer.write(b"X-%d: %b\r\n" % (sent, b"x" * 1000))
                    await writer.drain()
            assert sent < 20_000
            with suppress(ConnectionError):
                assert (await said).startswith(b"HTTP/1.1 431 ")


async def test_a_client_that_goes_away_in_the_middle_of_a_body_is_no_error(server: Running, caplog: pytest.LogCaptureFixture) -> None:
    async with over_http(server.url) as url:
        for more in (b"", b"\r\nMcp-Protocol-Version: 2026-07-28", b"\r\nMcp-Session-Id: x"):
            async with connected(url) as (_, writer):
                writer.write(head(server.token, 100).replace(b"\r\n\r\n", more + b"\r\n\r\n") + b'{"jsonrpc"')
                await writer.drain()
                await asyncio.sleep(0.3)
        await asyncio.sleep(0.3)
        async with httpx2.AsyncClient() as http:
            assert (await http.post(url, headers=headers(server.token), json=BEGIN)).status_code == 200
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


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
