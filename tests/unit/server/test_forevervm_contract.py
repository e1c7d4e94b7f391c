"""What ForeverVM's clients rely on over HTTP, most of it without saying so. Each of these breaks one of them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from everforge.engine.fake import FakeEngine
from kit.forevervm import Http, http
from kit.service import Running, service

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


@pytest.fixture
async def served() -> AsyncIterator[Running]:
    async with service() as served:
        yield served


@pytest.fixture
async def api(served: Running) -> AsyncIterator[Http]:
    async with http(served) as client:
        yield client


@pytest.fixture
def restores(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """No sandbox comes to life before this is set."""
    gate = asyncio.Event()
    restore = FakeEngine.restore

    async def wait_and_restore(self: FakeEngine, *args: Any, **kwargs: Any) -> Any:
        await gate.wait()
        return await restore(self, *args, **kwargs)

    monkeypatch.setattr(FakeEngine, "restore", wait_and_restore)
    return gate


# --- accounts and machines ---------------------------------------------------------------------------------------------------------------------


async def test_whoami_names_the_account_and_the_token_contains_a_dot(served: Running, api: Http) -> None:
    assert list(await api.json("GET", "/v1/whoami")) == ["account"]
    id, _, secret = served.token.partition(".")
    assert id
    assert secret


async def test_both_spellings_of_pending_instructions_are_present_and_agree(api: Http) -> None:
    name = await api.new()
    running = (await api.exec(name, "hang()"))["instruction_seq"]
    await api.exec(name, "1")
    (busy,) = await api.list()
    assert busy["has_pending_instruction"] is busy["has_pending_instructions"] is True
    await api.exec(name, "1", interrupt=True)
    await api.end(name, running + 2)
    (idle,) = await api.list()
    assert idle["has_pending_instruction"] is idle["has_pending_instructions"] is False


async def test_a_listed_machine_has_every_field_and_times_are_rfc_3339(api: Http) -> None:
    await api.new()
    (machine,) = await api.list()
    assert {"name", "created_at", "running", "has_pending_instruction", "has_pending_instructions", "expires_at", "tags"} <= set(machine)
    assert RFC3339.fullmatch(machine["created_at"])
    assert machine["expires_at"] is None
    assert type(machine["running"]) is bool


async def test_machines_are_listed_newest_first_by_get_and_by_post(api: Http) -> None:
    names = [await api.new() for _ in range(3)]
    assert [m["name"] for m in (await api.json("GET", "/v1/machine/list"))["machines"]] == names[::-1]
    assert [m["name"] for m in (await api.json("POST", "/v1/machine/list"))["machines"]] == names[::-1]  # no body at all
    assert [m["name"] for m in await api.list()] == names[::-1]


async def test_tags_come_back_exactly_as_given_and_none_is_added(api: Http) -> None:
    tags = {"Team": "Blau & Weiß", "empty": "", "a.b/c:d": " spaces ", "名": "\u2028\U0001f600"}
    given, bare = await api.new(tags=tags), await api.new()
    assert {m["name"]: m["tags"] for m in await api.list()} == {given: tags, bare: {}}


async def test_the_tag_filter_is_exact_and_all_tags_must_match(api: Http) -> None:
    both = await api.new(tags={"a": "1", "b": "2"})
    await api.new(tags={"a": "1"})
    await api.new(tags={"a": "1", "b": "22"})
    await api.new(tags={"A": "1", "b": "2"})
    assert [m["name"] for m in await api.list(tags={"a": "1", "b": "2"})] == [both]
    assert len(await api.list(tags={"a": "1"})) == 3
    assert len(await api.list(tags={})) == 4
    assert await api.list(tags={"b": ""}) == []


async def test_names_are_lower_case_letters_digits_and_dashes_and_two_are_reserved(api: Http) -> None:
    assert re.fullmatch(r"[a-z0-9-]+", await api.new())
    for word in ("new", "list"):
        answer = await api.client.post("/v1/machine/new", json={"name": word})
        assert (answer.status_code, answer.json()["code"]) == (400, "InvalidInput")


async def test_sign_up_needs_no_token_and_gives_one_with_a_dot(served: Running, api: Http) -> None:
    answer = await sign_up(served, "ada@example.org", "Ada_L-1")
    assert answer.status_code == 200
    assert answer.json()["token"].count(".") == 1
    async with http(served, answer.json()["token"]) as theirs:
        assert (await theirs.json("GET", "/v1/whoami"))["account"].lower() == "ada_l-1"
        await api.new()
        assert await theirs.list() == []  # another account's machines are no business of theirs


@pytest.mark.parametrize(
    ("email", "name", "status", "code"),
    [
        ("other@example.org", "ADA", 409, "AccountNameAlreadyExists"),
        ("Ada@Example.org", "other", 409, "EmailAlreadyExists"),
        ("other@example.org", "ab", 400, "InvalidInput"),
        ("other@example.org", "a" * 17, 400, "InvalidInput"),
        ("other@example.org", "a b c", 400, "InvalidInput"),
        ("nobody", "other", 400, "InvalidInput"),
    ],
)
async def test_sign_up_says_what_is_taken_or_wrong_by_its_code(served: Running, email: str, name: str, status: int, code: str) -> None:
    assert (await sign_up(served, "ada@example.org", "ada")).status_code == 200
    refused = await sign_up(served, email, name)
    assert (refused.status_code, refused.json()["code"]) == (status, code)


async def sign_up(served: Running, email: str, name: str) -> httpx2.Response:
    async with httpx2.AsyncClient(base_url=served.url, headers={"x-forevervm-runner": "cargo"}) as client:
        return await client.post("/internal/signup", json={"email": email, "account_name": name})


# --- instructions ------------------------------------------------------------------------------------------------------------------------------


async def test_instructions_are_numbered_from_0_and_exec_says_of_which_machine(api: Http) -> None:
    name = await api.new()
    assert await api.exec(name, "1") == {"instruction_seq": 0, "interrupted": False, "machine": name}
    assert (await api.exec(name, "2"))["instruction_seq"] == 1
    answer = await api.json("GET", f"/v1/machine/{name}/exec/1/result")
    assert (answer["instruction_id"], answer["instruction_seq"], answer["result"]["value"]) == (1, 1, "2")


async def test_output_comes_one_chunk_per_line_without_its_newline_and_seq_restarts(api: Http) -> None:
    name = await api.new()
    assert await api.chunks(name, "print('a\\n\\nb'); print('c', end='')") == [
        {"stream": "stdout", "data": "a", "seq": 0},
        {"stream": "stdout", "data": "", "seq": 1},
        {"stream": "stdout", "data": "b", "seq": 2},
        {"stream": "stdout", "data": "c", "seq": 3},
    ]
    assert await api.chunks(name, "tell('d', stream='stderr')") == [{"stream": "stderr", "data": "d", "seq": 0}]


async def test_a_line_that_came_in_parts_is_one_chunk(api: Http) -> None:
    name = await api.new()
    code = "tell('one', 'tw', partial=True); tell('err', stream='stderr'); tell('o', partial=True); tell('', 'three'); tell('last', partial=True)"
    chunks = await api.chunks(name, code)
    assert [c["data"] for c in chunks if c["stream"] == "stdout"] == ["one", "two", "three", "last"]
    assert [c["data"] for c in chunks if c["stream"] == "stderr"] == ["err"]
    assert [c["seq"] for c in chunks] == list(range(5))


async def test_of_value_and_error_the_unused_one_is_absent(api: Http) -> None:
    name = await api.new()
    value, nothing, error = [await api.run(name, code) for code in ("6 * 7", "x = 1", "1 / 0")]
    assert (value["value"], value["data"]) == ("42", None)
    assert "error" not in value
    assert (nothing["value"], nothing["data"]) == (None, None)
    assert "error" not in nothing
    assert "value" not in error
    assert "data" not in error


async def test_value_is_the_repr_of_the_last_expression(api: Http) -> None:
    name = await api.new()
    assert (await api.run(name, "x = 'it''s'\nx"))["value"] == repr("its")
    assert (await api.run(name, "print(123) or 567"))["value"] == "567"


async def test_every_end_has_a_runtime_in_whole_milliseconds(api: Http) -> None:
    name = await api.new()
    seqs = [(await api.exec(name, code, timeout_seconds=1))["instruction_seq"] for code in ("1", "1 / 0", "hang()", "die()", "crash()", "1")]
    ends = [await api.end(name, seq) for seq in seqs]
    assert [e["end"] for e in ends] == ["value", "error", "timed_out", "error", "cancelled", "cancelled"] or [e["end"] for e in ends][-2] == "lost"
    assert all(type(e["runtime_ms"]) is int and e["runtime_ms"] >= 0 for e in ends)


async def test_errors_contain_the_exceptions_type_and_message(api: Http) -> None:
    error = (await api.run(await api.new(), "1 / 0"))["error"]
    assert "ZeroDivisionError" in error
    assert "division by zero" in error


async def test_a_timed_out_instruction_says_so_and_the_machines_state_survives(api: Http) -> None:
    name = await api.new()
    await api.run(name, "x = 41")
    assert "Timed out" in (await api.run(name, "hang()", timeout_seconds=0.2))["error"]
    assert (await api.run(name, "x + 1"))["value"] == "42"


async def test_the_last_picture_is_inline_in_data_and_all_are_in_displays(api: Http) -> None:
    name = await api.new()
    result = await api.run(name, "show({'image/png': 'Zmlyc3Q=', 'text/plain': 'a'}); show({'image/png': 'bGFzdA=='}); show({'text/html': '<b>'})")
    assert result["data"]["png"] == "bGFzdA=="
    assert len(result["displays"]) == 3
    assert (await api.run(name, "1"))["data"] is None


async def test_interrupt_ends_what_runs_and_what_waits_and_says_whether_there_was_something(api: Http) -> None:
    name = await api.new()
    running, waiting = [(await api.exec(name, code, timeout_seconds=60))["instruction_seq"] for code in ("hang()", "'never'")]
    accepted = await api.exec(name, "'now'", interrupt=True)
    assert accepted["interrupted"] is True
    assert (await api.end(name, accepted["instruction_seq"]))["value"] == "'now'"
    assert "error" in await api.end(name, running)
    assert "error" in await api.end(name, waiting)
    assert (await api.exec(name, "1", interrupt=True))["interrupted"] is False


# --- stream-result -----------------------------------------------------------------------------------------------------------------------------


async def test_stream_result_begins_at_0_also_after_the_end_and_says_nothing_else(api: Http) -> None:
    name = await api.new()
    await api.run(name, "show({'image/png': 'AA=='}); print('a'); tell('b', stream='stderr'); 'done'")
    for _ in range(2):
        said = await api.said(name, 0)
        assert [m["type"] for m in said] == ["output", "output", "result"]
        assert said[0] == {"type": "output", "chunk": {"stream": "stdout", "data": "a", "seq": 0}, "instruction_id": 0}
        assert (said[2]["instruction_id"], said[2]["result"]["value"]) == (0, "'done'")


async def test_stream_result_tells_lines_while_the_instruction_runs(api: Http) -> None:
    name = await api.new()
    await api.exec(name, "print('early'); hang()", timeout_seconds=60)
    async with api.client.stream("GET", f"/v1/machine/{name}/exec/0/stream-result") as answer:
        lines = answer.aiter_lines()
        assert json.loads(await anext(lines))["chunk"]["data"] == "early"
        await api.exec(name, "1", interrupt=True)
        assert json.loads(await anext(lines))["type"] == "result"


async def test_ndjson_is_ascii_every_line_ends_in_a_newline_and_none_is_blank(api: Http) -> None:
    name = await api.new()
    await api.exec(name, "print('äöü\\n\\n\\u2028'); tell('\\ud800 half'); '\\U0001f600 ' + chr(0xdc00)")
    content = await api.stream(name, 0)
    assert content.isascii()
    assert content.endswith(b"\n")
    assert all(line.strip() for line in content.split(b"\n")[:-1])
    assert b"\\ud800" not in content  # half of a pair alone: strict decoders refuse the whole line
    said = [json.loads(line) for line in content.splitlines()]
    assert [m["chunk"]["data"] for m in said[:-1]] == ["äöü", "", "\u2028", "\ufffd half"]
    assert said[-1]["result"]["value"] == "'\U0001f600 \\udc00'"  # repr has escaped it already


async def test_lone_surrogates_are_replaced_in_results_too(api: Http) -> None:
    name = await api.new()
    error = await api.run(name, "raise ValueError(chr(0xdc00) + '\\U0001f600')")
    assert error["error"] == "ValueError: \ufffd\U0001f600"


@pytest.mark.parametrize("door", ["result", "stream-result"])
async def test_a_long_wait_has_its_headers_early_and_spaces_that_harm_no_json(api: Http, door: str) -> None:
    name = await api.new()
    await api.exec(name, "hang()", timeout_seconds=60)
    async with api.client.stream("GET", f"/v1/machine/{name}/exec/0/{door}") as answer:
        assert answer.status_code == 200  # nothing has ended yet
        body = answer.aiter_raw()
        begun = await anext(body)
        begun += await anext(body)
        assert set(begun) == set(b" ")
        await api.exec(name, "1", interrupt=True)
        rest = b"".join([part async for part in body])
    said = json.loads((begun + rest).decode())
    assert "KeyboardInterrupt" in said["result"]["error"]


# --- five seconds of patience ------------------------------------------------------------------------------------------------------------------


async def test_create_exec_and_list_are_answered_before_the_machine_is_there(api: Http, restores: asyncio.Event) -> None:
    name = await api.new()
    assert (await api.exec(name, "6 * 7"))["instruction_seq"] == 0
    assert [m["name"] for m in await api.list()] == [name]
    restores.set()
    assert (await api.end(name, 0))["value"] == "42"


async def test_exec_on_a_sleeping_machine_is_answered_before_it_wakes(served: Running, api: Http, restores: asyncio.Event) -> None:
    restores.set()
    name = await api.new()
    await api.run(name, "x = 41")
    await served.machines.hibernate(name)
    (asleep,) = await api.list()
    assert asleep["running"] is False
    restores.clear()
    assert (await api.exec(name, "x + 1"))["instruction_seq"] == 1
    restores.set()
    assert (await api.end(name, 1))["value"] == "42"


# --- errors and addresses ----------------------------------------------------------------------------------------------------------------------


async def test_error_bodies_have_a_code_and_an_id_that_is_text(served: Running, api: Http) -> None:
    refused = [
        await api.client.get("/v1/machine/nobody/exec/0/result"),
        await api.client.get("/v1/whoami", headers={"authorization": "Bearer wrong.wrong"}),
        await api.client.get("/v1/whoami", headers={"authorization": "Bearer nodot"}),
        await api.client.post("/v1/machine/new", json={"memory_mb": "much"}),
        await api.client.post("/v1/machine/new", content=b"{"),
        await api.client.get("/v1/nothing"),
        await api.client.delete("/v1/whoami"),
    ]
    assert [r.status_code for r in refused] == [404, 401, 401, 400, 400, 404, 405]
    for answer in refused:
        assert isinstance(answer.json()["code"], str)
        assert isinstance(answer.json()["id"], str)


async def test_an_instruction_that_was_never_accepted_is_not_found_at_once(api: Http) -> None:
    name = await api.new()
    for door in ("result", "stream-result"):
        answer = await api.client.get(f"/v1/machine/{name}/exec/7/{door}")
        assert (answer.status_code, answer.json()["code"]) == (404, "InstructionNotFound")


async def test_two_leading_slashes_are_one(served: Running, api: Http) -> None:
    assert await api.json("GET", f"{served.url}//v1/whoami") == await api.json("GET", "/v1/whoami")
    assert (await api.json("POST", f"{served.url}//v1/machine/list", {}))["machines"] == []


async def test_the_host_header_may_come_without_a_port(served: Running) -> None:
    address = httpx2.URL(served.url)
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        writer.write(f"GET /v1/whoami HTTP/1.1\r\nHost: {address.host}\r\nAuthorization: Bearer {served.token}\r\nConnection: close\r\n\r\n".encode())
        assert (await asyncio.wait_for(reader.read(), 10)).startswith(b"HTTP/1.1 200 ")
    finally:
        writer.close()
