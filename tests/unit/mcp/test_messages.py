from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCNotification, JSONRPCRequest

from everforge.mcp.messages import Lines, encoded, error, parse


@given(st.lists(st.binary(max_size=12).filter(lambda line: b"\n" not in line), max_size=8), st.integers(1, 9), st.integers(1, 10))
def test_lines_are_found_however_they_come_and_long_ones_are_dropped_in_their_place(lines: list[bytes], size: int, bytes_max: int) -> None:
    whole, found = b"".join(line + b"\n" for line in lines), []
    taker = Lines(bytes_max)
    for start in range(0, len(whole), size):
        found += taker.take(whole[start : start + size])
    assert found == [line if len(line) <= bytes_max else None for line in lines]


def test_a_line_without_an_end_takes_no_memory() -> None:
    lines = Lines(1000)
    for _ in range(1000):
        assert lines.take(b"x" * 100) == []
    assert len(lines._rest) <= 1000
    assert lines.take(b"\nnext\n") == [None, b"next"]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}', JSONRPCRequest),
        (b'{"jsonrpc": "2.0", "method": "x", "params": {"id": 1}}', JSONRPCNotification),
    ],
)
def test_a_message_is_taken_for_what_it_is(line: bytes, kind: type) -> None:
    found = parse(line)
    assert isinstance(found, SessionMessage)
    assert isinstance(found.message, kind)


@pytest.mark.parametrize("line", [b"{", b"\xff\xfe", b"hello", b"[" * 100_000, b'{"a": 1}x', b'{"a": ' + b"9" * 5000 + b"}}"])
def test_what_is_no_json_is_a_parse_error(line: bytes) -> None:
    found = parse(line)
    assert isinstance(found, JSONRPCError)
    assert (found.error.code, found.id) == (-32700, None)


@pytest.mark.parametrize(
    ("line", "id"),
    [
        (b"[]", None), (b"1", None), (b"null", None), (b'{"jsonrpc": "1.0", "id": 7, "method": "ping"}', 7), (b'{"jsonrpc": "2.0", "id": "a"}', "a"),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', None), (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', None),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', None), (b'{"jsonrpc": "2.0", "id": 3, "method": 4}', 3),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', None), (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', None),
    ],
)  # fmt: skip
def test_what_is_json_and_no_message_is_an_invalid_request_with_the_id_it_has(line: bytes, id: object) -> None:
    found = parse(line)
    assert isinstance(found, JSONRPCError)
    assert (found.error.code, found.id) == (-32600, id)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda below: st.lists(below) | st.dictionaries(st.text(), below), max_leaves=8
    )
)
def test_any_json_is_a_message_or_an_error(value: object) -> None:
    assert isinstance(parse(json.dumps(value).encode()), SessionMessage | JSONRPCError)


@given(
    st.binary(max_size=60) | st.text(st.sampled_from('{}[]",:\\u8d0idmethodjsrpc2. \ud800')).map(lambda text: text.encode("utf-8", "surrogatepass"))
)
def test_any_bytes_are_a_message_or_an_error_that_can_be_written(line: bytes) -> None:
    found = parse(b'{"jsonrpc": "2.0", "id": ' + line + b', "method": "x", "params": {}}')
    assert isinstance(found, SessionMessage | JSONRPCError)
    if isinstance(found, JSONRPCError):
        json.loads(encoded(found))


def test_what_cannot_be_written_as_it_is_is_written_all_the_same() -> None:
    assert json.loads(encoded(error(-32600, "half \ud800"))) == {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "half \ud800"}}


CALL = '{"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "run_python", "arguments": {"code": "%s"}}}'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ((CALL % "\\ud83d").encode(), "half of a surrogate pair"),
        (b"\xef\xbb\xbf" + (CALL % "1").encode(), "byte order mark"),
        ((CALL % "1").replace("2.0", "1.0").encode(), "no JSON-RPC 2.0 message"),
    ],
)
def test_what_is_wrong_with_a_message_is_said(line: bytes, said: str) -> None:
    found = parse(line)
    assert isinstance(found, JSONRPCError)
    assert (found.error.code, found.id) == (-32600, 3)
    assert said in found.error.message


def test_what_is_not_utf_8_is_no_json() -> None:
    found = parse((CALL % "1").encode("utf-16"))
    assert isinstance(found, JSONRPCError)
    assert (found.error.code, "in UTF-8" in found.error.message) == (-32700, True)
