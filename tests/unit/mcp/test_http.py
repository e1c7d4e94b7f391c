"""Over HTTP: who may come in, which sessions are whose, and what is said to what is no message."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
from pathlib import Path

import anyio
import httpx2
import pytest

from everforge import AsyncEverforge, cli
from everforge.mcp.bearer import Tokens
from everforge.mcp.http import Place
from everforge.mcp.limits import MESSAGE_BYTES_MAX
from everforge.wire.errors import Unauthenticated
from kit.mcpserving import ERAS, WAIT_SECONDS, command, data_of, environment, http_client, over_http, until
from kit.service import Running

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
BEGIN = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


def headers(token: str, **more: str) -> dict[str, str]:
    return {**HEADERS, "Authorization": f"Bearer {token}", **{key.replace("_", "-"): value for key, value in more.items()}}


async def machine_of(url: str, token: str, era: str, name: str = "tester", **more: str) -> str:
    async with http_client(url, token, era, name, **more) as client:
        return data_of(await client.call_tool("run_python", {"code": "1"}))["machine"]


@pytest.mark.parametrize("era", ERAS)
async def test_each_account_reaches_its_own_machines_and_a_name_continues_a_conversation(era: str, server: Running) -> None:
    other = await server.account("other")
    async with over_http(server.url) as url:
        first = await machine_of(url, server.token, era, Everforge_Conversation="thesis")
        assert await machine_of(url, server.token, era, Everforge_Conversation="thesis") == first
        theirs = await machine_of(url, other, era, Everforge_Conversation="thesis")
        async with http_client(url, other, era) as client:
            listed = data_of(await client.call_tool("list_machines", {}))["machines"]
            assert [found["name"] for found in listed] == [theirs]
            assert (await client.call_tool("run_python", {"code": "1", "machine": first})).is_error


async def test_without_a_name_a_session_is_a_conversation_and_where_there_are_none_the_client_is(server: Running) -> None:
    async with over_http(server.url) as url:
        async with http_client(url, server.token, "legacy") as client:
            names = [data_of(await client.call_tool("run_python", {"code": "1"}))["machine"] for _ in range(2)]
        assert names[0] == names[1]
        assert await machine_of(url, server.token, "legacy") != names[0]
        modern = await machine_of(url, server.token, "auto")
        assert await machine_of(url, server.token, "auto") == modern
        assert await machine_of(url, server.token, "auto", name="another client") != modern


async def test_a_conversation_outlives_the_mcp_server(server: Running) -> None:
    async with over_http(server.url) as url:
        first = await machine_of(url, server.token, "auto")
    async with over_http(server.url) as url:
        assert await machine_of(url, server.token, "auto") == first


@pytest.mark.parametrize("era", ERAS)
async def test_progress_arrives_and_cancelling_interrupts(era: str, server: Running, forge: AsyncEverforge) -> None:
    told: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with over_http(server.url) as url, http_client(url, server.token, era) as client:
        name = data_of(await client.call_tool("run_python", {"code": "1"}))["machine"]
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "run_python", {"code": "tell('begun')\nhang()"}, None, hear)
                await until(lambda: "begun" in told)
                scope.cancel()
        assert (await forge.machine(name).instruction(1).result(wait_seconds=20)).end == "interrupted"
        assert data_of(await client.call_tool("run_python", {"code": "2"}))["value"] == "2"


async def test_nobody_comes_in_without_a_token_that_is_good(server: Running) -> None:
    async with over_http(server.url) as url, httpx2.AsyncClient() as http:
        for given in (
            {},
            {"Authorization": "Bearer ef-nobody"},
            {"Authorization": "Basic eDp5"},
            {"Authorization": "Bearer"},
            {"Authorization": "Bearer \u00ff".encode("latin-1")},
        ):
            for method in ("POST", "GET", "DELETE"):
                answer = await http.request(method, url, headers={**HEADERS, **given}, json=BEGIN if method == "POST" else None)  # pyright: ignore[reportArgumentType]
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"].startswith("Bearer ")
                assert answer.json()["error_description"]
        assert (await http.post(url, headers=headers(server.token), json=BEGIN)).status_code == 200


async def test_a_session_belongs_to_the_token_that_began_it(server: Running) -> None:
    other = await server.account("other")
    async with over_http(server.url) as url, httpx2.AsyncClient() as http:
        session = (await http.post(url, headers=headers(server.token), json=BEGIN)).headers["mcp-session-id"]
        assert (await http.post(url, headers=headers(server.token, mcp_session_id=session), json=PING)).status_code == 200
        for method in ("POST", "GET", "DELETE"):
            stolen = await http.request(method, url, headers=headers(other, mcp_session_id=session), json=PING if method == "POST" else None)
            assert stolen.status_code == 404
        assert (await http.post(url, headers=headers(server.token, mcp_session_id="f" * 32), json=PING)).status_code == 404
        assert (await http.delete(url, headers=headers(server.token, mcp_session_id=session))).status_code == 200
        assert (await http.post(url, headers=headers(server.token, mcp_session_id=session), json=PING)).status_code == 404


async def test_names_that_are_not_ours_and_pages_of_others_are_refused(server: Running) -> None:
    async with over_http(server.url, place=Place(port=0, names=["mcp.example.org"])) as url, httpx2.AsyncClient() as http:
        for given, status in (
            ({"Host": "evil.example"}, 421), ({"Host": "127.0.0.1.evil.example:80"}, 421), ({"Origin": "https://evil.example"}, 403),
            ({"Origin": "null"}, 403), ({"Host": "mcp.example.org"}, 200), ({"Host": "mcp.example.org:443", "Origin": "https://mcp.example.org"}, 200),
            ({"Host": "localhost:1"}, 200), ({"Host": "localhost:1@evil.example"}, 421), ({"Host": "localhost:x"}, 421), ({"Host": "localhost:"}, 421),
            ({"Host": "[::1]:80"}, 200), ({"Host": "[::1]:80.evil.example"}, 421), ({"Host": "mcp.example.org:1/evil"}, 421),
            ({"Origin": "http://localhost:x.evil.example"}, 403), ({"Origin": "http://localhost:1@evil.example"}, 403),
            ({"Origin": "http://localhost:80"}, 200), ({"Origin": "http://[::1]:80"}, 200), ({"Origin": "http://localhost"}, 200),
        ):  # fmt: skip
            for era in ({}, {"mcp_protocol_version": "2026-07-28"}):
                said = await http.post(url, headers=headers(server.token, **given, **era), json=BEGIN)
                assert (said.status_code in (421, 403)) == (status != 200), given
                assert era or said.status_code == status, given


async def test_what_is_no_message_is_answered_by_errors_and_the_rest_works(server: Running) -> None:
    async with over_http(server.url) as url, httpx2.AsyncClient(timeout=WAIT_SECONDS) as http:

        async def post(content: bytes, **more: str) -> httpx2.Response:
            return await http.post(url, headers=headers(server.token, **more), content=content)

        for era in ({}, {"mcp_protocol_version": "2026-07-28"}):
            bad = await post(b"{ no json", **era)
            assert (bad.status_code, bad.json()["error"]["code"]) == (400, -32700)
            assert (await post(b"[" * 100_000, **era)).status_code == 400
            assert (await post(b"[]", **era)).json()["error"]["code"] in (-32600, -32602)
            assert (await post(b"x" * (MESSAGE_BYTES_MAX + 1), **era)).status_code == 413
            assert (await post(json.dumps(PING).encode(), Content_Type="text/plain", **era)).status_code == 400
        assert (await post(json.dumps(PING).encode(), mcp_protocol_version="1999-01-01")).status_code == 400
        assert (await post(json.dumps(PING).encode())).status_code == 400  # no session yet
        assert (await http.put(url, headers=headers(server.token))).status_code == 405
        session = (await post(json.dumps(BEGIN).encode())).headers["mcp-session-id"]
        unknown = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "no_such_tool", "arguments": {}}}
        said = await post(json.dumps(unknown).encode(), mcp_session_id=session)
        assert '"code":-32602' in said.text
        assert (await post(json.dumps(PING).encode(), mcp_session_id=session)).status_code == 200


async def test_no_more_sessions_than_there_may_be(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everforge.mcp.http.SESSIONS_MAX", 2)
    async with over_http(server.url) as url, httpx2.AsyncClient() as http:
        said = [await http.post(url, headers=headers(server.token), json=BEGIN) for _ in range(3)]
        assert [answer.status_code for answer in said] == [200, 200, 503]
        ended = await http.delete(url, headers=headers(server.token, mcp_session_id=said[0].headers["mcp-session-id"]))
        assert ended.status_code == 200
        assert (await http.post(url, headers=headers(server.token), json=BEGIN)).status_code == 200


async def test_a_session_that_is_idle_ends(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everforge.mcp.http.SESSION_IDLE_SECONDS", 0.1)
    async with over_http(server.url) as url, httpx2.AsyncClient() as http:
        session = (await http.post(url, headers=headers(server.token), json=BEGIN)).headers["mcp-session-id"]
        await asyncio.sleep(0.5)  # asking would keep it
        assert (await http.post(url, headers=headers(server.token, mcp_session_id=session), json=PING)).status_code == 404


async def test_a_server_that_is_away_is_said_to_be(server: Running) -> None:
    async with over_http("http://127.0.0.1:9") as url, httpx2.AsyncClient(timeout=WAIT_SECONDS) as http:
        away = await http.post(url, headers=headers(server.token), json=BEGIN)
        assert (away.status_code, away.json()["error"]) == (503, "Unreachable")
        assert away.headers["retry-after"]


async def test_a_token_is_asked_about_again_after_a_while_and_few_are_remembered(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everforge.mcp.bearer.TOKENS_MAX", 2)
    now, asked = [0.0], []

    def base_url() -> str:
        asked.append(1)
        return server.url

    tokens = Tokens(base_url, lambda: now[0])
    made = [server.token, *[await server.scoped("read") for _ in range(2)]]
    for _ in range(3):
        await tokens.check(made[0])
    assert len(asked) == 1
    now[0] = 31.0
    await tokens.check(made[0])
    assert len(asked) == 2
    for token in made[1:]:
        await tokens.check(token)
    assert len(tokens._good) == 2
    with pytest.raises(Unauthenticated):
        await tokens.check("ef-nobody")
    assert len(tokens._good) == 2


async def test_files_of_the_server_are_out_of_reach(server: Running, tmp_path: Path) -> None:
    async with over_http(server.url) as url, http_client(url, server.token) as client:
        assert not {"upload_file", "download_file"} & {tool.name for tool in (await client.list_tools()).tools}


def begun(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("ready http://127.0.0.1:")
    return line.removeprefix("ready ").strip()


async def test_the_command_says_where_it_is_and_ends_cleanly_with_a_client_connected(server: Running, home: Path) -> None:
    process = subprocess.Popen(
        command("--http", "--port", "0"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(server.url, "")
    )  # fmt: skip
    try:
        url = await asyncio.to_thread(begun, process)
        async with http_client(url, server.token, "legacy") as client:
            data_of(await client.call_tool("run_python", {"code": "1"}))
            process.send_signal(signal.SIGINT)
            out, err = await asyncio.to_thread(process.communicate, timeout=WAIT_SECONDS)
        assert process.returncode == 0
        assert (out, "Traceback" in err) == ("", False)
    finally:
        process.kill()
        process.wait()


def test_a_port_that_is_taken_is_a_sentence(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert cli.run(["mcp", "serve", "--http", "--port", str(taken.getsockname()[1])]) == 3
    assert "address already in use; --port 0 picks a free one" in capsys.readouterr().err
