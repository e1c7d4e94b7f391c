"""JSON with comments, changed as text: what any file of that kind must still say afterwards, and every byte of it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from everforge.cli.mcp.clients import jsonc, jsonedits
from everforge.cli.mcp.clients.texts import BOM, Broken, Text, decode
from kit.clientfiles import Edits, is_within, json_of, put_somewhere, without
from kit.length import length

FIELDS = {"command": "/home/ada/.local/bin/everforge", "args": ["mcp", "serve"]}
EXAMPLES = length(100, 1000)

texts = st.text(st.sampled_from('ab"\\/*{},: é🦀\u2028'), max_size=6)
leaves = st.none() | st.booleans() | st.integers(-10, 10**12) | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=12)
sections = st.dictionaries(texts, values, max_size=3)
comments = st.sampled_from(["// a } comment\n", "/* { \n */", "/**/", '// " ,\n'])
spaces = st.sampled_from(["", "", " ", "\n", "\n  ", "\n\t", "  "])


@st.composite
def written(draw: st.DrawFn, value: Any, free: bool = True) -> str:
    """The value as somebody may have typed it."""

    def gap() -> str:
        return draw(spaces) + (draw(comments) + draw(spaces) if free and draw(st.integers(0, 5)) == 0 else "")

    def write(one: Any) -> str:
        if isinstance(one, dict):
            parts = [f"{gap()}{json.dumps(name)}{gap()}:{gap()}{write(inner)}{gap()}" for name, inner in one.items()]
        elif isinstance(one, list):
            parts = [f"{gap()}{write(inner)}{gap()}" for inner in one]
        else:
            return json.dumps(one, ensure_ascii=draw(st.booleans()))
        end = "," if free and parts and draw(st.booleans()) else ""
        first, last = "{}" if isinstance(one, dict) else "[]"
        return first + ",".join(parts) + end + gap() + last

    text = gap() + write(value) + gap()
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


@st.composite
def configurations(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    value = draw(st.dictionaries(texts, values, max_size=3))
    if draw(st.booleans()):
        value = put_somewhere(draw, value, "servers", draw(sections))
    return draw(written(value)), value


def put(text: str, fields: dict[str, Any] = FIELDS) -> str:
    return jsonedits.put(text, "servers", "everforge", fields, {})


EDITS = Edits("servers", put, jsonedits.drop, json_of)


@settings(max_examples=EXAMPLES, deadline=None)
@given(configurations())
def test_what_is_put_in_is_there_and_nothing_else_changes(given: tuple[str, dict[str, Any]]) -> None:
    text, value = given
    made = EDITS.check_put(text, value, FIELDS)
    assert list(json_of(made))[: len(value)] == list(value)
    assert is_within(text, made)


@settings(max_examples=EXAMPLES, deadline=None)
@given(configurations())
def test_what_is_taken_out_again_leaves_every_byte_as_it_was(given: tuple[str, dict[str, Any]]) -> None:
    text, value = given
    gone = jsonedits.drop(put(text), "servers", "everforge")
    if value.get("servers"):
        assert gone == text
    else:  # whether an empty section, and what space in braces, was there before, only a backup can tell
        assert {name: inner for name, inner in json_of(gone).items() if inner != {} or name != "servers"} == without(value, "servers")
        assert re.findall(r"//[^\r\n]*|/\*.*?\*/", gone, re.DOTALL) == re.findall(r"//[^\r\n]*|/\*.*?\*/", text, re.DOTALL)
        assert gone == text or not value or "servers" in value


@settings(max_examples=EXAMPLES, deadline=None)
@given(configurations(), st.data())
def test_any_entry_can_be_taken_out_and_its_neighbours_stay(given: tuple[str, dict[str, Any]], data: st.DataObject) -> None:
    text, value = given
    assume(value.get("servers"))
    EDITS.check_drop(text, value, data.draw(st.sampled_from(sorted(value["servers"]))))


@settings(max_examples=EXAMPLES, deadline=None)
@given(sections, values, st.data())
def test_an_entry_that_is_there_is_brought_up_to_date_and_keeps_what_it_has_besides(section: dict[str, Any], extra: Any, data: st.DataObject) -> None:
    old = {"command": "old", "extra": extra}
    text = data.draw(written({"servers": {**section, "everforge": old}, "last": 1}))
    assert json_of(put(text)) == {"servers": {**section, "everforge": {**old, **FIELDS}}, "last": 1}


@settings(max_examples=EXAMPLES, deadline=None)
@given(values, st.data())
def test_what_the_standard_library_reads_is_read_alike(value: Any, data: st.DataObject) -> None:
    text = data.draw(written(value, free=False))
    found = jsonc.scan(text)
    assert found is not None
    assert jsonc.plain(text, found) == json.loads(text) == value
    assert jsonc.first_liberty(text) is None


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.text(st.sampled_from('{}[]",:/*\\ \n\r\tae01.-unltrfs\x00é'), max_size=30))
def test_whatever_it_is_it_is_read_as_the_standard_library_does_or_called_broken(text: str) -> None:
    try:
        found = jsonc.scan(text)
    except Broken:
        with pytest.raises(ValueError):
            json.loads(text)
        return
    if found is not None and jsonc.first_liberty(text) is None:
        assert jsonc.plain(text, found) == json.loads(text)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.binary(max_size=20), st.booleans())
def test_bytes_come_back_as_they_were_or_the_place_is_named(data: bytes, marked: bool) -> None:
    try:
        data.decode()
    except UnicodeDecodeError:
        with pytest.raises(Broken, match="a byte there is not UTF-8"):
            decode(BOM * marked + data)
    else:
        assert decode(BOM * marked + data).encode() == BOM * marked + data


@pytest.mark.parametrize(
    ("text", "line", "column", "what"),
    [
        ("{", 1, 2, "a name in double quotes or } is missing"),
        ('{\n  "a" 1}', 2, 7, "a colon is missing"),
        ('{"a": 1\n "b": 2}', 2, 2, "a comma or } is missing"),
        ('{"a": [1 2]}', 1, 10, "a comma or ] is missing"),
        ('{"a": }', 1, 7, "a value is missing"),
        ('{"a": "x\n"}', 1, 7, "a text is not closed"),
        ("{}\n/* never", 2, 1, "a comment begins that does not end"),
        ("{} x", 1, 4, "something follows where the end should be"),
        ("{'a': 1}", 1, 2, "a name in double quotes"),
        ('{"é🦀": nul}', 1, 8, "a value is missing"),
        ('{"servers": {}, "servers": {}}', 1, 17, '"servers" stands there for the second time'),
        ('{"servers": {"everforge": {}, "everforge": {}}}', 1, 31, '"everforge" stands there for the second time'),
        ('{"servers": []}', 1, 13, '"servers" should be an object in { }'),
        ("[" * 300, 1, 202, "more than 200 things are nested"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, line: int, column: int, what: str) -> None:
    EDITS.check_broken(text, line, column, what)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"servers":{"a":1}}', '{"servers":{"a":1,"everforge":{"command":"x","args":["y"]}}}'),
        ('{"servers": {}}', '{"servers": {"everforge": {"command": "x", "args": ["y"]}}}'),
        (
            '{\n\t"servers": {\n\t\t"a": 1, // one\n\t\t// two\n\t},\n}',
            '{\n\t"servers": {\n\t\t"a": 1, // one\n\t\t"everforge": {\n\t\t\t"command": "x",\n\t\t\t"args": ["y"]\n\t\t},\n\t\t// two\n\t},\n}',
        ),
        (
            '{\r\n    "servers": {}\r\n}',
            '{\r\n    "servers": {\r\n        "everforge": {\r\n            "command": "x",\r\n            "args": ["y"]\r\n        }\r\n    }\r\n}',
        ),
    ],
)
def test_what_comes_in_looks_like_what_is_there(before: str, after: str) -> None:
    assert put(before, {"command": "x", "args": ["y"]}) == after


def test_a_number_that_python_does_not_read_is_no_obstacle() -> None:
    text = '{"servers": {"a": ' + "9" * 5000 + "}}"
    assert put(text).startswith(text[:-2])
    assert set(jsonedits.entries(put(text), "servers")) == {"a", "everforge"}


def test_a_long_file_takes_no_longer_than_its_length_lets_it() -> None:
    whole = {"history": [{"display": "x" * 400, "n": [1, 2, {"a": None}]}] * 4000, "servers": {"a": {}}}
    text = json.dumps(whole, indent=2)
    assert json_of(put(text))["servers"]["everforge"] == FIELDS
    for hostile in ('{"a": "' + "\\" * 100_000, "{" + "/" * 100_000, '{"a": "' + "x\\u" * 50_000, "/*" * 100_000, "{" + " " * 300_000):
        with pytest.raises(Broken):
            put(hostile)


def test_the_text_knows_its_mark() -> None:
    assert Text("é", True).encode() == BOM + "é".encode()
    assert decode(BOM + b"{}") == Text("{}", True)
