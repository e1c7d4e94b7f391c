"""The short way to read a message must say what the long way says, or nothing."""

from __future__ import annotations

import pytest

from everforge.guest import shortcuts
from everforge.wire.messages import Ack, End, Run, decode_from_guest, decode_from_keeper, encode

CODES = ["", "1+1", "x = 'a'\nprint(\"b\\n\")", "\t\\", "ä \u2028", "\x00\x7f", "a" * 5000, '","code":"']
VALUES = [None, "", "2", "'x'", 'a "quoted" \\ back\nslash\ttab', "ä", "\x07", "{}", "a" * 5000]


@pytest.mark.parametrize("code", CODES)
def test_an_instruction_is_read_the_same_both_ways(code: str) -> None:
    body = encode(Run(7, code))
    assert shortcuts.run(body) == decode_from_keeper(Run.kind, body) == Run(7, code)


def test_characters_that_json_spells_as_pairs_go_the_long_way() -> None:
    for code in ("𝄞", "\ud800"):
        assert shortcuts.run(encode(Run(1, code))) is None


def test_an_acknowledgement_is_read_the_same_both_ways() -> None:
    for number in (0, 1, 10**15 - 1):
        assert shortcuts.acknowledged(encode(Ack(number))) == number


@pytest.mark.parametrize("value", VALUES)
def test_an_end_that_is_let_through_is_a_sound_one(value: str | None) -> None:
    body = encode(End(7, "value", 12, value)).replace(b',"value":null', b"")
    body = body[: body.index(b',"data"')] + b"}"
    if shortcuts.ended(body) is not None:
        assert decode_from_guest(End.kind, body) == End(7, "value", 12, value)
    else:
        assert value in ("ä", "\x07", "a" * 5000)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b'{"instruction":7,"end":"value"}',
        b'{"instruction":07,"end":"value","runtime_us":1}',
        b'{"instruction":7,"end":"died","runtime_us":1}',
        b'{"instruction":7,"end":"value","runtime_us":-1}',
        b'{"instruction":7,"end":"value","runtime_us":1,"value":"a"b"}',
        b'{"instruction":7,"end":"value","runtime_us":1,"value":"a\nb"}',
        b'{"instruction":7,"end":"value","runtime_us":1,"value":"\\x"}',
        b'{"instruction":7,"end":"value","runtime_us":1,"value":"\\"}',
        b'{"instruction":7,"end":"value","runtime_us":1,"value":"\xff"}',
        b'{"instruction":7,"end":"value","runtime_us":1}\n',
        b'{"instruction":9999999999999999999,"end":"value","runtime_us":1}',
        b'{"instruction":9007199254740993,"end":"value","runtime_us":1}',
        b'{"instruction":7,"end":"value","runtime_us":9007199254740993}',
    ],
)
def test_whatever_else_claims_to_be_an_end_goes_the_long_way(body: bytes) -> None:
    assert shortcuts.ended(body) is None


@pytest.mark.parametrize(
    "body",
    [b"", b'{"instruction":1,"code":"a}', b'{"instruction":1,"code":"a"} ', b'{"instruction":1,"code":"\n"}', b'{"instruction":1,"code":"\xff"}'],
)
def test_whatever_else_claims_to_be_an_instruction_goes_the_long_way(body: bytes) -> None:
    assert shortcuts.run(body) is None
