"""YAML, changed as text: comments, order, anchors and quotes of any file of Goose's stay, and every byte of it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from everforge.cli.mcp.clients import yamledits, yamltree
from everforge.cli.mcp.clients.formats import BY_HAND
from everforge.cli.mcp.clients.texts import Broken
from kit.clientfiles import Edits, is_within, put_somewhere, without
from kit.length import length

FIELDS = {"type": "stdio", "cmd": "/home/ada/.local/bin/everforge", "args": ["mcp", "serve"]}
INITIAL = {"name": "everforge", "enabled": True, "timeout": 300, "bundled": None, "envs": {}, "env_keys": []}
WHOLE = {**INITIAL, **FIELDS}
EXAMPLES = length(80, 1000)

words = st.text(st.sampled_from("ab:#-'\" {},é🦀&*!|>%@`0~"), max_size=6)
names = words.filter(bool)  # one that is empty is written with a question mark, see below
leaves = st.none() | st.booleans() | st.integers(-9, 9) | words
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=8)
roots = st.dictionaries(names, values, max_size=3)
sections = st.dictionaries(names, st.dictionaries(names, values, min_size=1, max_size=3), max_size=3)


@st.composite
def configurations(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """As a library writes it, and then somebody put comments between the lines."""
    value = draw(roots)
    if draw(st.booleans()):
        value = put_somewhere(draw, value, "extensions", draw(sections))
    flow = draw(st.sampled_from([False, False, None, True]))
    text = yaml.safe_dump(
        value, sort_keys=False, width=10**6, allow_unicode=draw(st.booleans()), indent=draw(st.sampled_from([2, 4])), default_flow_style=flow
    )
    lines = text.splitlines(keepends=True) if value else []
    for _ in range(draw(st.integers(0, 3)) if flow is not True else 0):
        lines.insert(draw(st.integers(0, len(lines))), draw(st.sampled_from(["# a: comment\n", "   # 'indented\n", "\n"])))
    made = "".join(lines)
    made = made.removesuffix("\n") if draw(st.booleans()) else made
    return (made.replace("\n", "\r\n") if draw(st.booleans()) else made), value


def put(text: str) -> str:
    return yamledits.put(text, "extensions", "everforge", FIELDS, INITIAL)


EDITS = Edits("extensions", put, yamledits.drop, yaml.safe_load)


@settings(max_examples=EXAMPLES, deadline=None)
@given(configurations())
def test_what_is_put_in_is_there_and_nothing_else_changes(given: tuple[str, dict[str, Any]]) -> None:
    text, value = given
    made = EDITS.check_put(text, value, WHOLE)
    if value.get("extensions") != {}:  # else braces give way
        assert is_within(text, made)


@settings(max_examples=EXAMPLES, deadline=None)
@given(configurations())
def test_what_is_taken_out_again_leaves_every_byte_as_it_was(given: tuple[str, dict[str, Any]]) -> None:
    text, value = given
    gone = yamledits.drop(put(text), "extensions", "everforge")
    if value.get("extensions") or (value and "extensions" not in value):
        assert gone == text
    else:  # whether an empty section, or a line's end, was there before, only a backup can tell
        assert without(yaml.safe_load(gone) or {}, "extensions") == without(value, "extensions")
        assert gone.count("#") >= text.count("#")


@settings(max_examples=EXAMPLES, deadline=None)
@given(configurations(), st.data())
def test_any_entry_can_be_taken_out_and_its_neighbours_stay(given: tuple[str, dict[str, Any]], data: st.DataObject) -> None:
    text, value = given
    assume(value.get("extensions"))
    EDITS.check_drop(text, value, data.draw(st.sampled_from(sorted(value["extensions"]))))


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.text(st.sampled_from("extensions:everforge\n  -{}[],#'\"&*|>!~\t\r\x00é"), max_size=40))
def test_whatever_it_is_it_is_changed_rightly_or_called_broken(text: str) -> None:
    try:
        made = put(text)
    except Broken:
        return
    assert yamledits.entries(made, "extensions")["everforge"] == WHOLE
    assert put(made) == made


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.dictionaries(st.sampled_from(["cmd", "é", "a b"]), st.text(max_size=12) | st.lists(st.text(max_size=5), max_size=3), min_size=1))
def test_whatever_is_written_is_read_again(fields: dict[str, Any]) -> None:
    try:
        made = yamledits.put("", "extensions", "x", fields, {})
    except Broken:  # halves of characters, which no file has
        assert any("\ud800" <= letter <= "\udfff" for letter in str(fields))
        return
    assert yaml.safe_load(made) == {"extensions": {"x": fields}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("extensions:\n    a: {}\n", "extensions:\n    a: {}\n    x:\n        cmd: run\n"),
        ("extensions: {}  # none yet\nlast: 1\n", "extensions:  # none yet\n  x:\n    cmd: run\nlast: 1\n"),
        ("extensions:  # none yet\nlast: 1\n", "extensions:  # none yet\n  x:\n    cmd: run\nlast: 1\n"),
        ("a: |+\n  text\n\n", "a: |+\n  text\n\nextensions:\n  x:\n    cmd: run\n"),
        ("a: 1 # one", "a: 1 # one\nextensions:\n  x:\n    cmd: run"),
        ("{a: 1}\n", "{a: 1, extensions: {x: {cmd: run}}}\n"),
        ("extensions:\n  b: &c\n    d: [1]\n  e: *c\n", "extensions:\n  b: &c\n    d: [1]\n  e: *c\n  x:\n    cmd: run\n"),
        ("---\n# head\n", "---\n# head\nextensions:\n  x:\n    cmd: run\n"),
    ],
)
def test_what_comes_in_looks_like_what_is_there(before: str, after: str) -> None:
    assert yamledits.put(before, "extensions", "x", {"cmd": "run"}, {}) == after


def test_comments_in_a_section_outlive_the_last_entry_in_it() -> None:
    text = "a: 1\nextensions: # mine\n  # mine, too\n  everforge:\n    cmd: x\nb: 2\n"
    assert yamledits.drop(text, "extensions", "everforge") == "a: 1\nextensions: {} # mine\n  # mine, too\nb: 2\n"
    assert yamledits.drop("a: 1\nextensions:\n  everforge:\n    cmd: x\nb: 2\n", "extensions", "everforge") == "a: 1\nb: 2\n"


def test_an_anchor_stays_where_it_is() -> None:
    text = "extensions: &all\n  everforge:\n    cmd: x\nsame: 1\n"
    gone = yamledits.drop(text, "extensions", "everforge")
    assert gone == "extensions: &all {}\nsame: 1\n"
    assert yaml.safe_load(gone) == {"extensions": {}, "same": 1}


def test_an_entry_that_is_there_keeps_its_comments_and_what_it_has_besides() -> None:
    text = "extensions:\n  everforge: # ours\n    type: stdio # kind\n    cmd: old # path\n    args: [x] # words\n    enabled: false\n    mine: 1\n"
    made = put(text)
    entry = yaml.safe_load(made)["extensions"]["everforge"]
    assert entry == {"type": "stdio", "cmd": FIELDS["cmd"], "args": FIELDS["args"], "enabled": False, "mine": 1}
    for comment in ("# ours", "# kind", "# path"):
        assert comment in made


@pytest.mark.parametrize(
    ("text", "line", "column", "what"),
    [
        ("a: [1\nb: 2\n", 2, 2, "expected ',' or ']'"),
        ("a: 1\n\tb: 2\n", 2, 1, "cannot start any token"),
        ("a: 'x\n", 2, 1, "unexpected end of stream"),
        ("a: 1\n---\nb: 1\n", 2, 1, "a second document begins"),
        ("- a\n", 1, 1, "names with values should be there"),
        ("extensions: [a]\n", 1, 13, '"extensions" should hold names with values'),
        ("extensions:\n  a: 1\nextensions:\n  b: 1\n", 3, 1, '"extensions" stands there for the second time'),
        ("a: \x00\n", 1, 4, "a character there is none that YAML has"),
        ("a: " + "[" * 200 + "]" * 200, 1, 104, "more than 100 things are nested"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, line: int, column: int, what: str) -> None:
    EDITS.check_broken(text, line, column, what)


@pytest.mark.parametrize("text", ["? ''\n: null\n", "? [a, b]\n: 1\n", "extensions:\n  &a\n  b: 1\n  ? c\n  : 1\n", "a: 1\n...\n# end\n..."])
def test_what_is_written_in_a_strange_way_is_changed_rightly_or_not_at_all(text: str) -> None:
    try:
        made = put(text)
    except Broken as broken:
        assert broken.what == BY_HAND  # noqa: PT017
    else:
        assert yamledits.drop(made, "extensions", "everforge") == text


def test_an_alias_ends_where_it_stands_and_not_where_its_anchor_does() -> None:
    text = "a: &x 1\nb:\n  - *x\n"
    root = yamltree.scan(text)
    assert root is not None
    assert (root.end, root.pairs[1][1].items[0].kind) == (len(text) - 1, "alias")
