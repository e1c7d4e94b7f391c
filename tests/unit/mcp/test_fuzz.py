"""What no client would say: answered by errors of the protocol, or by nothing where nothing may be said, and the next good request works."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections.abc import Generator
from typing import Any

import httpx2
import pytest

from everforge.mcp.limits import MESSAGE_BYTES_MAX
from kit.background import in_background
from kit.mcpserving import ERAS, WAIT_SECONDS, Raw, environment, over_http, raw_process
from kit.service import Running

PARSE, INVALID, METHOD, PARAMS = -32700, -32600, -32601, -32602
NOTHING = 0  # no answer at all
DEEP = 100_000
ERRORS = (PARSE, INVALID, METHOD, PARAMS, -32000, -32001, -32002, -32022)


def request(method: str, params: Any = None, id: Any = "fuzz") -> bytes:
    asked = {"jsonrpc": "2.0", "id": id, "method": method}
    return json.dumps(asked if params is None else {**asked, "params": params}).encode()


def call(name: Any, arguments: Any) -> bytes:
    return request("tools/call", {"name": name, "arguments": arguments})


def rpc(rest: bytes) -> bytes:
    return b'{"jsonrpc": "2.0", ' + rest + b"}"


# what is sent, and the code of the error that comes back; or several that would do
LINES: list[tuple[bytes, int | tuple[int, ...]]] = [
    # no JSON
    (b"{ no json", PARSE), (b"\xff\xfe\x00", PARSE), (b'{"jsonrpc": "2.0", "id": 1, "method": "pi\xffng"}', PARSE), (b"\x00" * 100, PARSE),
    (b"[" * DEEP, PARSE), (b'{"a":' * DEEP, PARSE), (b"{}{}", PARSE), (b"'single'", PARSE), (b"\xef\xbb\xbf" + request("ping"), (PARSE, INVALID)),
    (rpc(b'"id": 1, "method": "ping", "params": {"x": ' + b"[" * 5000 + b"]" * 5000 + b"}"), (PARSE, INVALID)),
    (rpc(b'"method": "x", "params": {"id": ' + b"9" * 5000 + b"}"), PARSE), (rpc(b'"id": ' + b"9" * 5000 + b', "method": "ping"'), PARSE),
    # JSON, and no message
    (b"[]", INVALID), (b"null", INVALID), (b"17", INVALID), (b'"text"', INVALID), (b"{}", INVALID), (b'{"jsonrpc": "2.0"}', INVALID),
    (b"[" + request("ping") + b"," + request("ping") + b"]", INVALID), (b'{"id": 1, "method": "ping"}', INVALID),
    (b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', INVALID), (b'{"jsonrpc": 2.0, "id": 1, "method": "ping"}', INVALID),
    (rpc(b'"id": null, "method": "ping"'), INVALID), (rpc(b'"id": {}, "method": "ping"'), INVALID), (rpc(b'"id": [1], "method": "ping"'), INVALID),
    (rpc(b'"id": 1.5, "method": "ping"'), INVALID), (rpc(b'"id": true, "method": "ping"'), INVALID), (rpc(b'"id": NaN, "method": "ping"'), (PARSE, INVALID)),
    (rpc(b'"id": "\\ud800", "method": "ping"'), (PARSE, INVALID)), (rpc(b'"id": 1, "method": 5'), INVALID), (rpc(b'"id": 1, "method": null'), INVALID),
    (rpc(b'"id": 1, "method": "ping", "params": [1]'), INVALID), (rpc(b'"id": 1, "method": "ping", "params": "x"'), INVALID),
    (rpc(b'"id": 1, "method": "tools/call", "params": {"name": "a\\ud800"}'), (PARSE, INVALID, PARAMS)),
    (rpc(b'"id": null, "method": "notifications/initialized"'), INVALID),
    # messages, and wrong ones
    (request("no/such/method"), METHOD), (request(""), METHOD), (request("x" * 100_000), METHOD), (request("tools/call"), PARAMS),
    (request("notifications/initialized"), METHOD), (request("prompts/list"), METHOD), (request("sampling/createMessage"), METHOD),
    (call("no_such_tool", {}), PARAMS), (call("x" * 1_000_000, {}), PARAMS), (call(5, {}), PARAMS), (call(None, {}), PARAMS),
    (call("run_python", ["code"]), PARAMS), (call("run_python", "code"), PARAMS), (call("run_python", 1), PARAMS),
    (request("tools/call", {"name": "run_python", "arguments": {"code": "1"}, "_meta": {"progressToken": {}}}), PARAMS),
    (request("tools/call", {"name": "run_python", "arguments": {"code": "1"}, "_meta": 5}), PARAMS),
    (request("resources/read"), PARAMS), (request("resources/read", {"uri": 5}), PARAMS), (request("resources/read", {"uri": "x" * 1_000_000}), PARAMS),
    (request("resources/read", {"uri": "everforge://machine/../../etc/passwd"}), PARAMS),
    (request("resources/read", {"uri": "everforge://machine/%00/tape"}), PARAMS), (request("resources/subscribe", {"uri": "x"}), METHOD),
    (request("tools/list", {"cursor": "x"}), PARAMS), (request("tools/list", {"cursor": 5}), PARAMS),
    (request("completion/complete", {"ref": {"type": "x"}, "argument": {}}), PARAMS), (request("initialize", "x"), (INVALID, PARAMS)),
    (request("initialize", {"protocolVersion": 5}), PARAMS), (request("initialize", {}), PARAMS),
    (b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"x": "' + b"y" * MESSAGE_BYTES_MAX + b'"}}', INVALID),
    # nobody answers these
    (b"", NOTHING), (b"   \t\r", NOTHING), (rpc(b'"method": "notifications/nothing"'), NOTHING), (rpc(b'"id": "gone", "result": {}'), NOTHING),
    (rpc(b'"id": 99, "error": {"code": 1, "message": "x"}'), NOTHING), (rpc(b'"method": "notifications/cancelled"'), NOTHING),
    (rpc(b'"method": "notifications/cancelled", "params": {"requestId": "nobody"}'), NOTHING),
    (rpc(b'"method": "notifications/cancelled", "params": {"requestId": {}}'), NOTHING),
    (rpc(b'"method": "notifications/progress", "params": {"progressToken": "x", "progress": "y"}'), NOTHING),
    (rpc(b'"method": "tools/call", "params": {"name": "run_python"}'), NOTHING),
]  # fmt: skip


@pytest.fixture(scope="module")
def running() -> Generator[Running]:
    with in_background() as found:
        yield found


@pytest.fixture(scope="module")
def env(running: Running) -> dict[str, str]:
    return environment(running.url, running.token)


def answers_before_ping(raw: Raw, mark: str) -> list[dict[str, Any]]:
    """All that was said before the server answered this."""
    raw.send(request("ping", id=mark))
    said: list[dict[str, Any]] = []
    while (one := raw.answer()).get("id") != mark:
        said.append(one)
    assert one["result"] == {}
    return said


def code_of(said: list[dict[str, Any]]) -> int:
    assert len(said) <= 1, said
    if not said:
        return NOTHING
    assert said[0]["jsonrpc"] == "2.0"
    assert 0 < len(said[0]["error"]["message"]) < 2000
    return said[0]["error"]["code"]


def test_over_standard_input_every_wrong_line_gets_its_error_and_the_next_good_one_its_answer(env: dict[str, str]) -> None:
    with raw_process(env) as raw:
        raw.begin()
        for number, (line, code) in enumerate(LINES):
            raw.send(line)
            first = [] if code == NOTHING else [raw.answer()]  # answers come in any order
            found = code_of([*first, *answers_before_ping(raw, f"ping {number}")])
            assert found in (code if isinstance(code, tuple) else (code,)), (line[:200], found)
        ran = raw.ask(request("tools/call", {"name": "run_python", "arguments": {"code": "6 * 7"}}))
        assert ran["result"]["structuredContent"]["value"] == "42"


def test_a_version_that_nobody_knows_is_answered_with_one_that_is_known(env: dict[str, str]) -> None:
    with raw_process(env) as raw:
        for version in ("1999-01-01", "", "2099-12-31", "x" * 10_000):
            info = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
            said = raw.ask(request("initialize", info))
            assert said["result"]["protocolVersion"] in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


def test_half_a_message_and_the_end_is_the_end(env: dict[str, str]) -> None:
    with raw_process(env) as raw:
        raw.begin()
        assert raw.process.stdin is not None
        raw.process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "meth\xf0\x9f')
        raw.process.stdin.close()
        assert raw.process.wait(WAIT_SECONDS) == 0
        assert raw.process.stderr is not None
        assert raw.process.stderr.read() == b""


WORDS = ["initialize", "ping", "tools/call", "tools/list", "resources/read", "resources/list", "completion/complete", "notifications/cancelled", "x"]


def anything(dice: random.Random, depth: int = 3) -> Any:
    leaves = [None, True, -1, 0, 10**30, 1.5, "", "x", "\u0000", "é" * 50, "run_python", "everforge://machines", "2025-11-25", dice.random()]
    if depth == 0 or dice.random() < 0.5:
        return dice.choice(leaves)
    if dice.random() < 0.3:
        return [anything(dice, depth - 1) for _ in range(dice.randrange(4))]
    names = ["name", "arguments", "uri", "cursor", "_meta", "requestId", "ref", "code", "machine", "protocolVersion", "progressToken", "x"]
    return {dice.choice(names): anything(dice, depth - 1) for _ in range(dice.randrange(5))}


def message(dice: random.Random) -> bytes:
    """All but right."""
    made: dict[str, Any] = {"jsonrpc": "2.0", "id": dice.randrange(400), "method": dice.choice(WORDS), "params": anything(dice)}
    for key in list(made):
        if dice.random() < 0.1:
            made[key] = anything(dice, 1)
        elif dice.random() < 0.05:
            del made[key]
    raw = json.dumps(made, ensure_ascii=dice.random() < 0.5).encode("utf-8", "surrogatepass")
    if dice.random() < 0.2:
        at = dice.randrange(len(raw))
        raw = raw[:at] + dice.randbytes(dice.randrange(3)) + raw[at + dice.randrange(5) :]
    return raw.replace(b"\n", b"")


def test_whatever_comes_over_standard_input_it_lives_and_speaks_the_protocol(env: dict[str, str]) -> None:
    seed = time.time_ns()
    dice = random.Random(seed)
    with raw_process(env) as raw:
        raw.begin()
        for batch in range(10):
            raw.send(*[message(dice) for _ in range(100)])
            for one in answers_before_ping(raw, f"ping {batch}"):
                assert one["jsonrpc"] == "2.0", seed
                assert "result" in one or one["error"]["code"] in ERRORS or one.get("method") == "notifications/progress", (seed, one)


def test_ten_thousand_requests_at_once_are_each_answered_once(env: dict[str, str]) -> None:
    kinds = [request("ping"), call("no_such_tool", {}), call("run_python", {}), b"{ no json", call("list_machines", {})]
    lines = [kinds[0 if number % 10 else number // 10 % 5].replace(b'"fuzz"', str(number).encode()) for number in range(10_000)]
    with raw_process(env) as raw:
        raw.begin()
        sender = threading.Thread(target=raw.send, args=lines)  # and nobody reads meanwhile
        sender.start()
        said = [raw.answer() for _ in lines]
        sender.join(WAIT_SECONDS)
        wanted = sorted(number for number, line in enumerate(lines) if line != b"{ no json")
        assert sorted(one["id"] for one in said if one["id"] is not None) == wanted
        assert raw.ask(request("ping")) == {"jsonrpc": "2.0", "id": "fuzz", "result": {}}


# --- over HTTP ---------------------------------------------------------------------------------------------------------------------------------------

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


class Session:
    """Over HTTP, of the handshake's era."""

    def __init__(self, http: httpx2.AsyncClient, url: str, token: str) -> None:
        self._http, self._url = http, url
        self._headers = {**HEADERS, "Authorization": f"Bearer {token}"}

    async def begin(self) -> None:
        info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        begun = await self.post(request("initialize", info))
        self._headers["Mcp-Session-Id"] = begun.headers["mcp-session-id"]
        await self.post(rpc(b'"method": "notifications/initialized"'))

    async def stand_alone(self) -> None:
        """As requests do since 2026."""
        self._headers |= {"Mcp-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}

    async def post(self, content: bytes) -> httpx2.Response:
        return await self._http.post(self._url, headers=self._headers, content=content)

    async def code(self, content: bytes) -> int:
        """Of the error; or nothing."""
        answer = await self.post(content)
        assert answer.status_code < 500, (answer.status_code, content[:200])
        if answer.status_code == 413:
            return INVALID
        said = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")] or ([answer.json()] if answer.text else [])
        return code_of(said)


async def test_over_http_every_wrong_body_gets_its_error_and_the_next_good_one_its_answer(running: Running) -> None:
    async with over_http(running.url) as url, httpx2.AsyncClient(timeout=WAIT_SECONDS) as http:
        session = Session(http, url, running.token)
        await session.begin()
        for line, code in LINES:
            found = await session.code(line)
            known = code if isinstance(code, tuple) else (code if line.strip() else PARSE,)
            assert found in known, (line[:200], found)
            assert (await session.post(request("ping"))).status_code == 200


async def test_an_id_that_is_under_way_is_refused_and_waits_for_nobody(running: Running) -> None:
    async with over_http(running.url) as url, httpx2.AsyncClient(timeout=WAIT_SECONDS) as http:
        session = Session(http, url, running.token)
        await session.begin()
        asked = request("tools/call", {"name": "run_python", "arguments": {"code": "hang()", "timeout_seconds": 1.0}})
        said = await asyncio.gather(*(session.post(asked) for _ in range(3)))
        assert sorted(answer.status_code for answer in said) == [200, 400, 400]
        assert [answer.json()["error"]["code"] for answer in said if answer.status_code == 400] == [INVALID, INVALID]
        assert (await session.post(asked)).status_code == 200


async def test_a_number_and_the_same_as_text_are_one_id_to_those_under_way(running: Running) -> None:
    async with over_http(running.url) as url, httpx2.AsyncClient(timeout=WAIT_SECONDS) as http:
        session = Session(http, url, running.token)
        await session.begin()
        params = {"name": "run_python", "arguments": {"code": "hang()", "timeout_seconds": 2.0}}
        first = asyncio.create_task(session.post(request("tools/call", params, id=7)))
        await asyncio.sleep(0.5)
        second = await session.post(request("tools/call", params, id="7"))
        assert (second.status_code, second.json()["error"]["code"], second.json()["id"]) == (400, INVALID, "7")
        assert "timed_out" in (await first).text
        assert '"id":"7"' in (await session.post(request("ping", id="7"))).text


@pytest.mark.parametrize("era", ERAS)
async def test_whatever_comes_over_http_it_lives(era: str, running: Running) -> None:
    seed = time.time_ns()
    dice = random.Random(seed)
    async with over_http(running.url) as url, httpx2.AsyncClient(timeout=WAIT_SECONDS) as http:
        session = Session(http, url, running.token)
        await (session.begin() if era == "legacy" else session.stand_alone())
        for _ in range(10):
            said = await asyncio.gather(*(session.post(message(dice)) for _ in range(40)))
            assert all(answer.status_code < 500 for answer in said), seed
            listed = await session.post(request("tools/list", {"_meta": META} if era == "auto" else {}))
            assert (listed.status_code, "run_python" in listed.text) == (200, True), listed.text


async def test_hundreds_of_requests_at_once_over_http_are_each_answered(running: Running) -> None:
    limits = httpx2.Limits(max_connections=200)
    async with over_http(running.url) as url, httpx2.AsyncClient(timeout=2 * WAIT_SECONDS, limits=limits) as http:
        session, stranger = Session(http, url, running.token), Session(http, url, "ef-nobody")
        await session.begin()
        said = await asyncio.gather(*((stranger if number % 10 == 0 else session).post(request("ping", id=number)) for number in range(400)))
        assert [answer.status_code for answer in said] == [401 if number % 10 == 0 else 200 for number in range(400)]
