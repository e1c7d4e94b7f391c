"""What entries of a tape become for a program."""

from __future__ import annotations

from typing import Any

import pytest

from everforge import __version__
from everforge.client import results
from everforge.client.decoding import decode, entry
from everforge.client.failures import error_of
from everforge.client.results import Display, Gathering, Line, Result, behind
from everforge.wire import api
from everforge.wire.errors import EverforgeError, InstructionFailed, NameTaken, ProtocolError, RouteNotFound, Uncertain, Unreachable, VersionMismatch


def output(position: int, *lines: str, instruction: int | None = 3, stream: str = "stdout", partial: bool = False) -> dict[str, Any]:
    return {
        "type": "output", "position": position, "cursor": position + len(lines) - 1, "instruction": instruction,
        "stream": stream, "lines": list(lines), "partial": partial, "seq": 0,
    }  # fmt: skip


def ended(position: int = 90, **fields: Any) -> dict[str, Any]:
    return {"type": "ended", "position": position, "cursor": position, "instruction": 3, "end": "value", "runtime_ms": 1, "value": None, **fields}


def gathered(*entries: dict[str, Any]) -> tuple[list[Any], Result | None]:
    gathering = Gathering(3)
    return [happening for one in entries for happening in gathering.take(one)], gathering.result


def test_lines_are_strings_that_know_their_stream_and_whether_they_go_on() -> None:
    lines, result = gathered(
        output(0, "a", "b"), output(2, "50%", partial=True), output(3, "100%"), output(4, "oh", stream="stderr"), ended(value="7")
    )
    assert lines == ["a", "b", "50%", "100%", "oh"]
    assert "".join(line + line.end for line in lines[:4]) == "a\nb\n50%100%\n"
    assert [(line.stream, line.position) for line in lines[3:]] == [("stdout", 3), ("stderr", 4)]
    assert result is not None
    assert (result.stdout, result.stderr, result.value, result.ok) == ("a\nb\n50%100%\n", "oh\n", "7", True)
    assert result.text == "a\nb\n50%100%\noh\n7"


def test_what_other_instructions_write_is_not_ours() -> None:
    lines, result = gathered(output(0, "theirs", instruction=2), output(1, "a thread's", instruction=None), {**ended(), "instruction": 2})
    assert (lines, result) == ([], None)


def test_a_result_keeps_no_more_output_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "OUTPUT_CHARACTERS_MAX", 10)
    lines, result = gathered(output(0, "12345", "123456", "1"), ended())
    assert lines == ["12345", "123456", "1"]
    assert result is not None
    assert (result.stdout, result.truncated) == ("12345\n", True)


def test_raise_for_error_gives_back_a_value_and_raises_anything_else() -> None:
    _, good = gathered(ended(value="1"))
    _, bad = gathered(ended(end="error", error="ValueError: no", traceback="Traceback ...\nValueError: no"))
    assert good is not None
    assert bad is not None
    assert good.raise_for_error() is good
    with pytest.raises(InstructionFailed, match="ValueError: no") as error:
        bad.raise_for_error()
    assert error.value.details["result"] is bad
    assert bad.text.startswith("Traceback")


def test_of_what_took_too_long_more_is_said_than_where_it_was() -> None:
    _, late = gathered(ended(end="timed_out", error="Timed out after 15 s", traceback="Traceback ...\nKeyboardInterrupt\n"))
    _, dead = gathered(ended(end="lost"))
    assert late is not None
    assert dead is not None
    assert late.text == "Traceback ...\nKeyboardInterrupt\nTimed out after 15 s"
    assert dead.text == "lost"


def test_a_notebook_gets_the_richest_form() -> None:
    shown = {"type": "displayed", "position": 1, "cursor": 1, "instruction": 3, "data": {"png": "aGVsbG8=", "text": "<Figure>"}, "metadata": {}}
    happenings, result = gathered(shown, ended())
    assert isinstance(happenings[0], Display)
    assert happenings[0].png == b"hello"
    assert result is not None
    assert result._repr_mimebundle_() == {"image/png": "aGVsbG8=", "text/plain": "<Figure>"}  # pyright: ignore[reportPrivateUsage]
    _, table = gathered(ended(value="a table", data={"html": "<table>"}))
    assert table is not None
    assert table._repr_mimebundle_() == {"text/html": "<table>", "text/plain": "a table"}  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(("cursor", "left"), [(9, ["a", "b", "c"]), (10, ["b", "c"]), (11, ["c"]), (12, None), (20, None)])
def test_of_an_output_that_was_read_in_part_only_the_rest_comes(cursor: int, left: list[str] | None) -> None:
    rest = behind(output(10, "a", "b", "c"), cursor)
    assert (None if rest is None else rest["lines"]) == left
    assert rest is None or (rest["cursor"], rest["position"]) == (12, 13 - len(rest["lines"]))


def test_entries_of_a_younger_server_are_let_pass_and_broken_ones_are_not() -> None:
    assert entry({"type": "invented", "position": 1}) is None
    with pytest.raises(ProtocolError, match="not as it should be"):
        entry({"type": "output", "position": 1, "cursor": "1"})


def test_answers_may_have_more_than_we_know_but_not_less() -> None:
    assert decode(api.Whoami, b'{"account":"me","since":1}') == api.Whoami(account="me")
    found = decode(api.InstructionList, b'{"instructions":[],"next":null}')
    assert found == api.InstructionList(instructions=[], next=None)
    for body in (b"{}", b"[]", b"no", b'{"instructions":{},"next":null}', b'{"instructions":[1],"next":null}'):
        with pytest.raises(ProtocolError):
            decode(api.InstructionList, body)


def refusal(status: int, body: bytes, **headers: str) -> EverforgeError:
    return error_of(status, headers, body, "http://s")


def test_errors_come_back_by_their_code() -> None:
    error = refusal(409, b'{"code":"NameTaken","message":"a is taken","retry":"never","id":"r1","details":{"name":"a"}}')
    assert type(error) is NameTaken
    assert (error.message, error.details, error.request_id) == ("a is taken", {"name": "a"}, "r1")


def test_an_unknown_code_keeps_its_code_message_and_advice() -> None:
    error = refusal(418, b'{"code":"Teapot","message":"short and stout","retry":"later"}', **{"retry-after": "3"})
    assert (error.code, error.http_status, error.retry, str(error), error.retry_after_seconds) == ("Teapot", 418, "later", "short and stout", 3.0)


@pytest.mark.parametrize(("given", "seconds"), [("3601", 3600), ("1e9", 3600), ("-1", 0), ("nan", 0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0)])
def test_a_server_cannot_make_its_clients_wait_for_ever(given: str, seconds: float) -> None:
    assert refusal(429, b'{"code":"TooMany","message":"slowly"}', **{"retry-after": given}).retry_after_seconds == seconds


@pytest.mark.parametrize(
    ("status", "kind"), [(404, VersionMismatch), (200, VersionMismatch), (500, VersionMismatch), (502, Uncertain), (503, Unreachable)]
)
def test_an_answer_that_is_not_ours_is_told_apart(status: int, kind: type[EverforgeError]) -> None:
    assert type(refusal(status, b"<html>")) is kind


def test_a_request_that_the_server_does_not_know_is_a_matter_of_versions() -> None:
    error = refusal(404, b'{"code":"RouteNotFound","message":"there is nothing here"}', **{"x-everforge-version": "9.9"})
    assert type(error) is VersionMismatch
    assert "9.9" in error.message
    assert "update" in error.message
    same = refusal(404, b'{"code":"RouteNotFound","message":"there is nothing here"}', **{"x-everforge-version": __version__})
    assert type(same) is RouteNotFound


def test_a_line_is_a_string() -> None:
    assert Line("x", stream="stderr") == "x"
