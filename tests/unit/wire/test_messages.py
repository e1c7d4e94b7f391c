from __future__ import annotations

import contextlib
import json
import math
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everforge.wire import messages
from everforge.wire.bodies import NESTING_MAX, is_too_heavy
from everforge.wire.errors import ProtocolError
from everforge.wire.frames import MESSAGE_BYTES_MAX
from everforge.wire.messages import (
    FROM_GUEST,
    FROM_KEEPER,
    Call,
    CallDropped,
    CannotFreeze,
    Completed,
    Display,
    End,
    FileMessage,
    FileTold,
    Frozen,
    GuestMessage,
    Hello,
    Outputs,
    Run,
    Thawed,
    decode_from_guest,
    decode_from_interpreter,
    decode_from_keeper,
    encode,
)
from everforge.wire.shapes import INTEGER_MAX, field_checks

counts = st.integers(0, messages.COUNT_MAX)
ints = st.integers(-INTEGER_MAX, INTEGER_MAX)
texts = st.text()  # without lone surrogates: those do not come back as they were
plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
json_values = st.recursive(plain, lambda c: st.lists(c, max_size=4) | st.dictionaries(texts, c, max_size=4), max_leaves=10)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "int": ints,
    "Count": counts,
    "Count | None": st.none() | counts,
    "Nanoseconds": st.integers(0, INTEGER_MAX),
    "str": texts,
    "bytes": st.binary(max_size=4000),
    "Octet": st.integers(0, 255),
    "bool": st.booleans(),
    "str | None": st.none() | texts,
    "list[str]": st.lists(texts, max_size=5),
    "list[Count]": st.lists(counts, max_size=5),
    "list[Any]": st.lists(json_values, max_size=3),
    "Any": json_values,
    "Stream": st.sampled_from(["stdout", "stderr"]),
    "GuestEnd": st.sampled_from(["value", "error", "interrupted", "died"]),
    "dict[str, Any]": st.dictionaries(texts, json_values, max_size=3),
    "dict[str, Any] | None": st.none() | st.dictionaries(texts, json_values, max_size=3),
    "dict[str, str]": st.dictionaries(texts, texts, max_size=3),
    "dict[str, int]": st.dictionaries(texts, ints, max_size=3),
}


SPOKEN = {kind: cls for kind, cls in FROM_GUEST.items() if not issubclass(cls, FileMessage)}  # the others are no JSON


def any_of(table: dict[int, type[GuestMessage]]) -> st.SearchStrategy[GuestMessage]:
    return st.one_of(*(st.builds(cls, **{f.name: FIELDS[str(f.type)] for f in fields(cls)}) for cls in table.values()))


@given(any_of(FROM_GUEST))
def test_what_a_guest_says_arrives_as_it_was(message: GuestMessage) -> None:
    assert decode_from_guest(message.kind, encode(message)) == message


@given(any_of(FROM_KEEPER))
def test_what_a_keeper_says_arrives_as_it_was(message: GuestMessage) -> None:
    assert decode_from_keeper(message.kind, encode(message)) == message


def test_no_two_messages_have_the_same_kind() -> None:
    kinds = [cls.kind for cls in (*FROM_GUEST.values(), *FROM_KEEPER.values())]
    assert len(set(kinds)) == len(kinds) == 24


kinds = st.sampled_from(sorted({*FROM_GUEST, *FROM_KEEPER})) | st.integers(0, 255)
wild = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()), lambda c: st.lists(c) | st.dictionaries(st.text(), c)
)


@given(kinds, st.binary() | wild.map(lambda v: json.dumps(v).encode()))
def test_any_bytes_give_a_message_or_a_protocol_error(kind: int, body: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        assert isinstance(decode_from_guest(kind, body), GuestMessage)
    with contextlib.suppress(ProtocolError):
        assert isinstance(decode_from_keeper(kind, body), GuestMessage) == (kind in FROM_KEEPER)


@given(any_of(SPOKEN), st.data())
def test_a_message_with_one_wrong_field_is_a_message_or_a_protocol_error(message: GuestMessage, data: st.DataObject) -> None:
    body = json.loads(encode(message))
    name = data.draw(st.sampled_from(sorted(body) or ["nothing"]) | st.text(max_size=5))
    if data.draw(st.booleans()):
        body.pop(name, None)
    else:
        body[name] = data.draw(wild)
    with contextlib.suppress(ProtocolError):
        found = decode_from_guest(message.kind, json.dumps(body).encode())
        assert all(check(getattr(found, name)) for name, check in field_checks(type(found)).items())
        encode(found).decode("ascii")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (Run.kind, b'{"instruction":1}'),
        (Run.kind, b'{"instruction":true,"code":"x"}'),
        (Run.kind, b'{"instruction":1.0,"code":"x"}'),
        (Run.kind, b'{"instruction":9223372036854775808,"code":"x"}'),
        (Run.kind, b'{"instruction":' + b"9" * 10_000 + b',"code":"x"}'),
        (Run.kind, b'{"instruction":NaN,"code":"x"}'),
        (Run.kind, b'{"instruction":1,"code":null}'),
        (Run.kind, b'{"instruction":1,"code":"\xff"}'),
        (Run.kind, b'{"instruction":1,"code":"\xed\xa0\x80"}'),  # a half surrogate pair in UTF-8
        (Run.kind, '{"instruction":1,"code":"x"}'.encode("utf-16")),
        (Run.kind, '\ufeff{"instruction":1,"code":"x"}'.encode()),
        (Run.kind, b'{"instruction":1,"code":"\x00"}'),
        (Run.kind, b"[]"),
        (Run.kind, b"null"),
        (Run.kind, b""),
        (Run.kind, b"[" * 100_000),
        (Run.kind, b'{"a":' * 100_000),
        (Run.kind, b'{"__class__":1}'),
    ],
)
def test_what_is_no_message_is_refused(kind: int, body: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_from_keeper(kind, body)


def test_a_guest_takes_from_a_younger_keeper_what_it_knows() -> None:
    assert decode_from_keeper(Run.kind, b'{"instruction":1,"code":"x","more":{"a":[1]}}') == Run(1, "x")
    for kind in (0, 63, 255):
        assert decode_from_keeper(kind, b'{"whatever":1}') is None


def test_a_keeper_takes_from_a_guest_what_is_in_its_tables_and_nothing_else() -> None:
    for kind, body in ((Frozen.kind, b'{"token":1,"more":1}'), (0, b"{}"), (255, b"{}")):
        with pytest.raises(ProtocolError):
            decode_from_guest(kind, body)


BODIES = {
    Hello: {"protocol": 1, "epoch": 1, "sent": 0, "received": 0, "frozen": False, "running": 1, "running_ms": 0, "last": 1, "interpreter": 1},
    Outputs: {"instruction": 1, "stream": "stdout", "lines": ["a"], "partial": False, "origin": 1},
    Display: {"instruction": 1, "data": {}, "metadata": {}},
    End: {"instruction": 1, "end": "value", "runtime_us": 0, "dropped_bytes": 0},
    Frozen: {"token": 1},
    CannotFreeze: {"token": 1, "why": ""},
    Thawed: {"drift_ns": 0, "reseeded": True},
    Completed: {"token": 1, "matches": ["a"], "start": 0, "end": 1, "busy": False},
    Call: {"instruction": 1, "call": 0, "function": "ask", "args": [], "kwargs": {}},
    CallDropped: {"instruction": 1, "call": 0},
}
NUMBERS = [(cls, name) for cls, body in BODIES.items() for name, value in body.items() if type(value) is int and name != "drift_ns"]


@pytest.mark.parametrize(("cls", "name"), NUMBERS)
@pytest.mark.parametrize("value", [-1, -(2**63), messages.COUNT_MAX + 1, 2**63 - 1, 2**64, 10**4000, 1.0, True, "1"])
def test_a_guest_s_number_out_of_its_range_is_refused(cls: type[GuestMessage], name: str, value: object) -> None:
    assert decode_from_guest(cls.kind, json.dumps(BODIES[cls]).encode())
    with pytest.raises(ProtocolError):
        decode_from_guest(cls.kind, json.dumps(BODIES[cls] | {name: value}).encode())


def test_every_number_of_a_guest_is_tried_above() -> None:
    declared = {(cls, f.name) for cls in SPOKEN.values() for f in fields(cls) if "Count" in str(f.type) or str(f.type).startswith("int")}
    assert declared == {*NUMBERS, (Thawed, "drift_ns"), (Hello, "calls")}


def test_a_message_of_the_other_direction_is_refused() -> None:
    with pytest.raises(ProtocolError):
        decode_from_guest(Run.kind, encode(Run(1, "x")))
    assert decode_from_keeper(Hello.kind, b"{}") is None


@pytest.mark.parametrize(("end", "fits"), [("value", True), ("lost", False), (["value"], False), ({}, False), (None, False)])
def test_a_word_that_is_not_of_the_list_is_refused(end: object, fits: bool) -> None:
    body = json.dumps({"instruction": 1, "end": end, "runtime_us": 1}).encode()
    if fits:
        assert decode_from_guest(End.kind, body) == End(1, "value", 1)
    else:
        with pytest.raises(ProtocolError):
            decode_from_guest(End.kind, body)


def nested(depth: int) -> bytes:
    return b'{"instruction":null,"data":{"a":' + b"[" * depth + b"]" * depth + b"}}"


@pytest.mark.parametrize("depth", [1, NESTING_MAX - 3])
def test_nesting_within_reason_is_taken(depth: int) -> None:
    message = decode_from_guest(Display.kind, nested(depth))
    assert json.loads(encode(message)) == json.loads(nested(depth)) | {"metadata": {}}


@pytest.mark.parametrize("depth", [NESTING_MAX + 1, 300, 900, 990, 5000, 10**6])
@pytest.mark.parametrize("tail", [b"", b'"\\ud800"'])
def test_deeper_nesting_is_refused(depth: int, tail: bytes) -> None:
    body = nested(depth).replace(b"[]", b"[" + tail + b"]")
    with pytest.raises(ProtocolError):
        decode_from_guest(Display.kind, body)


def test_many_brackets_side_by_side_are_not_nesting() -> None:
    lines = ["[{" * 1000] * 10
    assert decode_from_guest(Outputs.kind, encode(Outputs(1, "stdout", lines))) == Outputs(1, "stdout", lines)
    data: dict[str, Any] = {"a": [[] for _ in range(1000)]}
    assert decode_from_guest(Display.kind, encode(Display(None, data))) == Display(None, data)


MB = 1 << 20
HEAVY = {"lists": b"[],", "objects": b'{"a":1},', "strings": b'"ab",', "numbers": b"1,", "lists among text": b'"\\"[[,,",[],'}


@pytest.mark.parametrize("piece", HEAVY.values(), ids=list(HEAVY))
def test_more_values_than_memory_should_hold_are_refused(piece: bytes) -> None:
    for size, fits, once_fitted in ((MB // 8, True, True), (3 * MB // 2, False, True), (12 * MB, False, False)):
        body = b'{"instruction":0,"data":{"x":[' + piece * (size // len(piece)) + b"0]}}"
        assert is_too_heavy(body) is not fits
        for decode, taken in ((decode_from_interpreter, fits), (decode_from_guest, once_fitted)):
            if taken:
                assert isinstance(decode(Display.kind, body), Display)
            else:
                with pytest.raises(ProtocolError):
                    decode(Display.kind, body)


def test_a_long_text_full_of_commas_and_brackets_is_one_value() -> None:
    for text in ("a,b,[1,2],{}\n" * (8 * MB // 14), '","' * (2 * MB), "\\" * (3 * MB)):
        message = Display(0, {"text/csv": text, "text/plain": "x"})
        assert decode_from_guest(Display.kind, encode(message)) == message


def test_a_text_without_an_end_is_refused() -> None:
    with pytest.raises(ProtocolError):
        decode_from_guest(Display.kind, b'{"instruction":0,"data":{"x":"' + b"[,{" * (3 * MB))


@pytest.mark.parametrize("cls", [c for c in SPOKEN.values() if c.body_bytes_max < MESSAGE_BYTES_MAX])
def test_a_message_longer_than_an_honest_one_ever_is_is_refused(cls: type[GuestMessage]) -> None:
    body = json.dumps(BODIES[cls] if fields(cls) else {}).encode()
    assert decode_from_guest(cls.kind, body + b" " * (cls.body_bytes_max - len(body)))
    with pytest.raises(ProtocolError):
        decode_from_guest(cls.kind, body + b" " * (cls.body_bytes_max - len(body) + 1))


def test_what_a_clerk_tells_has_a_head_small_numbers_and_a_limit() -> None:
    limit = FileTold.body_bytes_max - messages.FILE_HEAD.size
    assert decode_from_guest(FileTold.kind, encode(FileTold(1, 2, 3, b"x" * limit)))
    for wrong in (
        b"short",
        encode(FileTold(1, 2, 3, b"x" * (limit + 1))),
        encode(FileTold(2**53 + 1, 2, 3, b"")),
        encode(FileTold(1, 2, 2**63, b"")),
    ):
        with pytest.raises(ProtocolError):
            decode_from_guest(FileTold.kind, wrong)


@given(st.text(st.characters()))  # with lone surrogates
def test_half_surrogate_pairs_become_replacement_characters_and_the_rest_stays(text: str) -> None:
    found = decode_from_guest(Outputs.kind, encode(Outputs(0, "stdout", [text])))
    assert isinstance(found, Outputs)
    (line,) = found.lines
    line.encode("utf-8")
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")  # two halves that meet are a whole
    assert line == "".join("\ufffd" if 0xD800 <= ord(c) <= 0xDFFF else c for c in joined)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_what_is_no_finite_number_becomes_null(text: str) -> None:
    found = decode_from_guest(Display.kind, b'{"instruction":null,"data":{"x":[' + text.encode() + b",1.5]}}")
    assert isinstance(found, Display)
    assert found.data == {"x": [None, 1.5]}
    assert decode_from_guest(Display.kind, encode(Display(None, {"x": math.inf}))) == Display(None, {"x": None})


def test_every_field_has_a_type_that_can_be_checked() -> None:
    for cls in (*FROM_GUEST.values(), *FROM_KEEPER.values()):
        assert list(field_checks(cls)) == [f.name for f in fields(cls)]
    assert messages.PROTOCOL == 3
