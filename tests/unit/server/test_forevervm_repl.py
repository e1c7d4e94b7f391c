"""What ForeverVM's clients rely on over the WebSocket /repl. Rust hangs, JavaScript crashes or comes back a thousand times a second where one fails."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncIterator

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.frames import Frame, Opcode

from everforge.server.doors import repl as door_of_repl
from everforge.server.serving import door
from kit.forevervm import Http, Repl, http, repl, socket
from kit.service import Running, service

KNOWN = {"connected", "exec_received", "output", "result"}


@pytest.fixture
async def served() -> AsyncIterator[Running]:
    async with service() as served:
        yield served


@pytest.fixture
async def api(served: Running) -> AsyncIterator[Http]:
    async with http(served) as client:
        yield client


# --- the handshake -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "token", "status"),
    [("new", "", 401), ("new", "wrong.wrong", 401), ("nobody", None, 404), ("NOT-A-NAME", None, 400), ("new", "nodot", 401)],
)
async def test_a_bad_token_or_machine_is_refused_in_the_handshake(
    served: Running, caplog: pytest.LogCaptureFixture, machine: str, token: str | None, status: int
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with socket(served, f"/v1/machine/{machine}/repl", token=served.token if token is None else token):
            pass
    assert refused.value.response.status_code == status
    assert isinstance(json.loads(refused.value.response.body or b"")["code"], str)
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR]  # whoever knocks must not fill the log


async def test_the_server_speaks_first_and_names_the_machine(served: Running, api: Http) -> None:
    name = await api.new()
    async with repl(served, name) as known, repl(served) as new:
        assert known.heard == [{"type": "connected", "machine_name": name}]
        assert set(new.heard[0]) == {"type", "machine_name"}
        assert {m["name"] for m in await api.list()} == {name, new.heard[0]["machine_name"]}


async def test_a_browser_gives_its_token_in_the_query_and_it_stands_in_no_log(served: Running, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with socket(served, f"/v1/machine/new/repl?_forevervm_jwt={served.token}") as opened:
        assert json.loads(await opened.recv())["type"] == "connected"
    with pytest.raises(InvalidStatus):
        async with socket(served, "/v1/machine/new/repl?_forevervm_jwt=wrong.secretive"):
            pass
    ours = [f"{r.getMessage()} {r.args} {r.exc_text}" for r in caplog.records if not r.name.startswith("websockets.client")]
    secret = served.token.partition(".")[2]
    assert not [line for line in ours if secret in line or "secretive" in line]


async def test_the_token_in_the_query_is_for_websockets_only(served: Running, api: Http) -> None:
    answer = await api.client.get(f"/v1/whoami?_forevervm_jwt={served.token}", headers={"authorization": ""})
    assert answer.status_code == 401


# --- instructions ------------------------------------------------------------------------------------------------------------------------------


async def test_an_instruction_is_received_then_prints_then_ends(served: Running) -> None:
    async with repl(served) as client:
        said = await client.run("print('a'); tell('b', stream='stderr'); 'done'", request_id=7)
        assert said[:3] == [
            {"type": "exec_received", "seq": 0, "request_id": 7},
            {"type": "output", "chunk": {"stream": "stdout", "data": "a", "seq": 0}, "instruction_id": 0},
            {"type": "output", "chunk": {"stream": "stderr", "data": "b", "seq": 1}, "instruction_id": 0},
        ]
        assert (said[3]["type"], said[3]["instruction_id"], said[3]["result"]["value"], said[3]["result"]["data"]) == ("result", 0, "'done'", None)
        assert (await client.run("print('again')", request_id=8))[1]["chunk"]["seq"] == 0


async def test_exec_may_come_before_the_client_has_seen_connected(served: Running) -> None:
    async with socket(served, "/v1/machine/new/repl", token=served.token) as opened:
        client = Repl(opened)
        await client.run("1")
        assert [m["type"] for m in client.heard] == ["connected", "exec_received", "result"]


async def test_several_instructions_may_be_sent_at_once(served: Running) -> None:
    async with repl(served) as client:
        for number in range(3):
            await client.send(f"print({number}); {number}", request_id=number)
        for number in range(3):
            assert (await client.until("result"))["result"]["value"] == str(number)
        received = [(m["request_id"], m["seq"]) for m in client.heard if m["type"] == "exec_received"]
        assert received == [(0, 0), (1, 1), (2, 2)]
        outputs = [(m["instruction_id"], m["chunk"]["data"]) for m in client.heard if m["type"] == "output"]
        assert outputs == [(0, "0"), (1, "1"), (2, "2")]


async def test_a_socket_hears_only_the_instructions_submitted_on_it(served: Running, api: Http) -> None:
    name = await api.new()
    async with repl(served, name) as one, repl(served, name) as two:
        await one.run("print('one')")
        await api.run(name, "print('http')")
        await two.run("print('two')")
        await one.run("print('one again')")
        assert [m["chunk"]["data"] for m in one.heard if m["type"] == "output"] == ["one", "one again"]
        assert [m["chunk"]["data"] for m in two.heard if m["type"] == "output"] == ["two"]


async def test_output_between_instructions_and_displays_are_no_message(served: Running) -> None:
    async with repl(served) as client:
        await client.run("show({'image/png': 'AA=='}); print('a')")
        await client.run("1")
        assert {m["type"] for m in client.heard} == KNOWN


async def test_a_line_that_came_in_parts_is_one_chunk(served: Running) -> None:
    async with repl(served) as client:
        said = await client.run("tell('be', partial=True); tell('gin', 'end', partial=True)")
        assert [m["chunk"] for m in said[1:-1]] == [{"stream": "stdout", "data": "begin", "seq": 0}, {"stream": "stdout", "data": "end", "seq": 1}]


# --- what is refused ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        {"instruction": {"code": 7}},
        {"instruction": {"code": "1", "timeout_seconds": -1}},
        {"instruction": {"code": "1", "timeout_seconds": "soon"}},
        {"instruction": {"code": "#" * (2 * 1024 * 1024)}},
        {"instruction": "1"},
        {},
    ],
    ids=["code", "timeout", "timeout-text", "too-long", "no-object", "nothing"],
)
async def test_a_refused_exec_is_an_instruction_with_the_number_minus_1_that_ends_in_an_error(served: Running, message: dict[str, object]) -> None:
    async with repl(served) as client:
        await client.socket.send(json.dumps({"type": "exec", "request_id": 5, **message}))
        result = (await client.until("result"))["result"]
        received, ended = client.heard[1:]
        assert received == {"type": "exec_received", "seq": -1, "request_id": 5}
        assert ended["instruction_id"] == -1
        assert (type(result["error"]), result["runtime_ms"]) == (str, 0)
        assert (await client.run("6 * 7", request_id=6))[-1]["result"]["value"] == "42"


async def test_exec_on_a_machine_that_is_gone_is_refused_in_the_same_way(served: Running) -> None:
    async with repl(served) as client:
        await client.run("1")
        await client.run("crash()")
        received, result = await client.run("1", request_id=9)
        assert (received["type"], received["request_id"]) == ("exec_received", 9)
        assert "error" in result["result"]
        assert {m["type"] for m in client.heard} <= KNOWN


async def test_a_full_queue_is_refused_in_the_same_way(served: Running) -> None:
    async with repl(served) as client:
        await client.send("hang()", timeout_seconds=60)
        for number in range(1, 130):
            await client.send("1", request_id=number)
        refused = await client.until("result")
        assert refused["instruction_id"] == -1
        assert {m["type"] for m in client.heard} <= KNOWN


# --- frames ------------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "[show({'image/png': 'A' * 15_000_000}) for _ in range(2)] and None",
        "[tell('x' * 1_000_000, partial=True) for _ in range(30)] and None",
        "[tell('\\u2028' * 200_000, partial=True) for _ in range(30)] and None",
    ],
    ids=["pictures", "line", "escaped-line"],
)
async def test_no_frame_is_larger_than_16_mib(served: Running, code: str) -> None:
    async with repl(served) as client:  # a larger one closes it with 1009
        await client.run(code)
        assert (await client.run("1"))[-1]["result"]["value"] == "1"


@pytest.mark.parametrize(("sdk", "breath_seconds", "least_seconds"), [("rust", 0.2, 0.99), ("javascript", 3600, 0)])
async def test_the_rust_client_has_time_to_show_its_lines_and_the_others_need_none(
    served: Running, monkeypatch: pytest.MonkeyPatch, sdk: str, breath_seconds: float, least_seconds: float
) -> None:
    """It has room for 64 that were not shown, and then shows no more of that instruction: four breaths. And one before it is told that it was heard."""
    monkeypatch.setattr(door_of_repl, "BREATH_SECONDS", breath_seconds)
    headers = {"authorization": f"Bearer {served.token}", "x-forevervm-sdk": sdk}
    async with connect(served.url.replace("http://", "ws://") + "/v1/machine/new/repl", additional_headers=headers) as opened:
        begun = time.monotonic()
        heard = await Repl(opened).run("for i in range(100): print(i)")
    assert [m["chunk"]["data"] for m in heard if m["type"] == "output"] == [str(i) for i in range(100)]
    assert time.monotonic() - begun >= least_seconds


async def test_a_machine_that_is_deleted_is_told_as_a_result_of_what_ran_and_of_what_comes_later(served: Running) -> None:
    """A socket that is closed would leave the Rust client waiting for ever, as it would one that another machine of the same name answers."""
    async with http(served) as api:
        name = await api.new(name="short-lived")
        async with repl(served, name) as client:
            await client.send("print('begun'); sleep(600)", timeout_seconds=600)
            await client.until("output")
            assert (await api.client.delete(f"/v1/machine/{name}")).status_code == 200
            told = await client.until("result")
            assert (told["instruction_id"], told["result"]["error"].partition(":")[0]) == (0, "cancelled")
            await api.new(name="short-lived")
            for request_id in (1, 2):
                received, refused = await client.run("1", request_id)
                assert (received["seq"], received["request_id"]) == (-1, request_id)
                assert refused["result"]["error"].startswith("MachineNotFound: ")


async def test_only_text_frames_come_and_never_a_ping(served: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Opcode] = []
    async with repl(served) as client:
        protocol = client.socket.protocol
        take = protocol.recv_frame

        def note(frame: Frame) -> None:
            seen.append(frame.opcode)
            take(frame)

        monkeypatch.setattr(protocol, "recv_frame", note)
        await client.run("print('a')")
    assert set(seen) <= {Opcode.TEXT, Opcode.CLOSE}
    assert door(served.service).config.ws_ping_interval is None


async def test_a_client_that_goes_away_in_the_middle_leaves_its_instruction_running(served: Running, api: Http) -> None:
    name = await api.new()
    async with repl(served, name) as client:
        await client.send("print('a'); sleep(0.2)", timeout_seconds=60)
        await client.until("output")
    assert (await api.end(name, 0))["value"] is None
