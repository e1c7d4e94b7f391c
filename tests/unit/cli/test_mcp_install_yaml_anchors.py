"""YAML in which one thing stands for another: what others say with our words stays what it was, or the file is left alone."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from everforge.cli.failures import LocalTrouble
from everforge.cli.mcp.clients import changes, yamledits, yamltree
from everforge.cli.mcp.clients.catalogue import CLIENTS
from everforge.cli.mcp.clients.files import Rights
from everforge.cli.mcp.clients.formats import BY_HAND
from everforge.cli.mcp.clients.texts import Broken
from kit.length import length

FIELDS = {"type": "stdio", "cmd": "/home/ada/.local/bin/everforge", "args": ["mcp", "serve"]}
EXAMPLES = length(150, 3000)

SHARED = {
    "fields": "extensions:\n  everforge:\n    cmd: &c old\n    args: &a [x]\n    type: stdio\n  b:\n    args: *a\n    cmd: *c\n",
    "entry": "extensions:\n  everforge: &x {cmd: old}\n  b: *x\n",
    "entry of lines": "extensions:\n  everforge: &x\n    cmd: old\nb: *x\n",
    "section": "extensions: &e\n  everforge:\n    cmd: old\nother: *e\n",
    "merged entry": "extensions:\n  everforge: &x\n    cmd: old\n  b:\n    <<: *x\n    args: []\n",
    "merged section": "extensions: &e\n  everforge:\n    cmd: old\nother:\n  <<: [*e]\n",
    "a name of before": "a: &c 1\nextensions:\n  everforge:\n    cmd: &c old\nb: *c\n",
    "a key": "extensions:\n  everforge:\n    &k cmd: &c old\nb: *c\n",
}
BORROWED = {
    "a section by a merge": "b: &b\n  extensions: {x: {cmd: 1}}\n<<: *b\n",
    "a section by the second merge": "a: &a {}\nb: &b\n  extensions: {x: {cmd: 1}}\n<<: [*a, *b]\n",
    "a section by a merge of a merge": "b: &b\n  extensions: {x: {cmd: 1}}\nc: &c\n  <<: *b\n<<: *c\n",
    "a section that others have, too": "extensions: &e\n  a: {cmd: x}\nother: *e\n",
    "a section within itself": "extensions: &e\n  x: [y, *e]\n",
    "a list within itself": "a: &a [*a]\n",
    "a section of others": "a: &e {b: {cmd: x}}\nextensions: *e\n",
    "a name by an alias": "a: &k extensions\n*k : {b: 1}\n",
}


def put(text: str) -> str:
    return yamledits.put(text, "extensions", "everforge", FIELDS, {})


def drop(text: str) -> str:
    return yamledits.drop(text, "extensions", "everforge")


@pytest.mark.parametrize("text", SHARED.values(), ids=SHARED)
@pytest.mark.parametrize("edit", [put, drop])
def test_an_entry_of_which_others_have_a_part_is_not_changed(text: str, edit: Any) -> None:
    yaml.safe_load(text.replace("&c 1", "1"))  # it is good as it is; this reader alone wants a name to be given once
    with pytest.raises(Broken, match=BY_HAND):
        edit(text)


@pytest.mark.parametrize("text", BORROWED.values(), ids=BORROWED)
def test_a_section_that_is_not_only_the_files_own_gets_no_entry(text: str) -> None:
    yaml.safe_load(text)
    with pytest.raises(Broken, match=BY_HAND):
        put(text)


def test_a_section_that_hides_another_one_is_not_taken_away() -> None:
    text = "b: &b\n  extensions: {x: {cmd: 1}}\n<<: *b\nextensions:\n  everforge:\n    cmd: old\n"
    assert yaml.safe_load(put(text))["extensions"] == {"everforge": {"cmd": FIELDS["cmd"], **FIELDS}}
    with pytest.raises(Broken, match=BY_HAND):
        drop(text)


def test_an_entry_that_comes_from_elsewhere_is_not_called_gone() -> None:
    text = "b: &b\n  everforge: {cmd: theirs}\nextensions:\n  <<: *b\n  everforge: {cmd: ours}\n"
    assert yaml.safe_load(put(text))["extensions"]["everforge"]["cmd"] == FIELDS["cmd"]
    with pytest.raises(Broken, match=BY_HAND):
        drop(text)


def test_an_alias_is_never_taken_for_what_it_is_called() -> None:
    text = "a: &stdio http\nextensions:\n  everforge: {type: *stdio}\n"
    assert yamledits.entries(text, "extensions")["everforge"] == {"type": "*stdio"}
    assert yaml.safe_load(put(text))["extensions"]["everforge"] == FIELDS


def test_an_alias_for_nothing_is_named_with_its_place() -> None:
    with pytest.raises(Broken, match="an alias stands there for something that nothing before it is called") as caught:
        put("a: 1\nb: *c\n")
    assert (caught.value.line, caught.value.column) == (2, 4)


def test_a_few_lines_that_stand_for_more_than_memory_holds_cost_nothing() -> None:
    bomb = "l0: &l0 [x, x]\n" + "".join(f"l{n}: &l{n} [*l{n - 1}, *l{n - 1}]\n" for n in range(1, 500))
    bomb += "m0: &m0 {a: 1}\n" + "".join(f"m{n}: &m{n}\n  <<: [*m{n - 1}, *m{n - 1}]\n" for n in range(1, 500)) + "<<: *m499\n"
    text = bomb + "extensions:\n  b: *l499\n"
    assert drop(put(text)) == text
    changed = bomb.replace("[x, x]", "[x, y]")
    shapes = yamltree.Shapes()
    one, same, other = (yamltree.scan(each) for each in (bomb, bomb, changed))
    assert one is not None
    assert same is not None
    assert other is not None
    assert shapes.of(one) == shapes.of(same) != shapes.of(other)


@pytest.mark.parametrize("uninstall", [False, True])
def test_the_file_stays_as_it_was_and_is_not_called_broken(uninstall: bool, tmp_path: Any) -> None:
    path, goose = tmp_path / "config.yaml", CLIENTS["goose"]
    path.write_text(SHARED["fields"])
    with pytest.raises(LocalTrouble, match=f"{BY_HAND}: nothing was changed; change it in an editor"):
        changes.plan_uninstall(goose, path, "everforge") if uninstall else changes.plan_install(goose, path, "everforge", FIELDS, Rights())
    assert path.read_text() == SHARED["fields"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("cmd: >-\n      old\n    type: stdio\n", "cmd: run\n    type: stdio\n"),
        ("cmd: |\n      old\n      words\n\n\n  # next\n  b: 1\n", "cmd: run\n\n\n  # next\n  b: 1\n"),
        ("cmd: |+ # why\n      old\n\n  b: 1\n", "cmd: run\n\n  b: 1\n"),
        ("cmd: >2\n        old", "cmd: run"),
        ("cmd: >\r\n      old\r\n    type: stdio\r\n", "cmd: run\r\n    type: stdio\r\n"),
    ],
)
def test_a_block_of_lines_gives_way_as_whole_lines(before: str, after: str) -> None:
    head = "extensions:\n  everforge:\n    ".replace("\n", "\r\n" if "\r" in before else "\n")
    assert yamledits.put(head + before, "extensions", "everforge", {"cmd": "run"}, {}) == head + after


def test_what_goes_wrong_on_the_way_is_no_fault_of_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "extensions:\n  everforge:\n    cmd: old\n"
    monkeypatch.setattr(yamledits, "_scalar", lambda _: "[")  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with pytest.raises(Broken) as caught:
        put(text)
    assert caught.value.what == BY_HAND


def test_a_field_that_is_there_twice_is_named_where_it_stands() -> None:
    with pytest.raises(Broken, match='"args" stands there for the second time') as caught:
        put("extensions:\n  everforge:\n    cmd: a long word that will be short\n    args: []\n    args: []\n")
    assert (caught.value.line, caught.value.column) == (5, 5)


@pytest.mark.parametrize(
    ("before", "after"),
    [("~ # c", " # c"), ("{  } # c", " # c"), ("{}   # c", "   # c"), (" # c", "  # c"), ("null  #", "  #"), ("{}# c", " # c"), ("~", "")],
)
def test_a_comment_keeps_its_distance(before: str, after: str) -> None:
    made = put(f"extensions: {before}\nb: 1\n")
    assert made.splitlines()[0] == f"extensions:{after}"
    assert made.endswith("\nb: 1\n")


def test_braces_with_an_anchor_take_an_entry_in() -> None:
    made = put("extensions: &e {}\n")
    assert made.startswith("extensions: &e {everforge: {")
    assert yaml.safe_load(made) == {"extensions": {"everforge": FIELDS}}


# --- any file that has anchors, aliases, merges and blocks in it ----------------------------------------------------------------------

ANCHORS = ("p", "q")
_MARK = re.compile(r" &(\w)|\*(\w)")


@st.composite
def nodes(draw: st.DrawFn, indent: int, depth: int = 0) -> str:
    """What stands behind a colon, its line's end with it."""
    anchor = draw(st.sampled_from(["", "", *(f" &{name}" for name in ANCHORS)]))
    margin = " " * indent
    kinds = ["plain", "quoted", "alias", "literal", "folded", "flow", "braces", "null"] + ["map", "list"] * (depth < 2)
    kind = draw(st.sampled_from(kinds))
    if kind == "map":
        return f"{anchor}\n" + draw(maps(indent + 2, depth + 1))
    if kind == "list":
        return f"{anchor}\n" + "".join(f"{margin}  -{draw(nodes(indent + 2, 2))}" for _ in range(draw(st.integers(1, 2))))
    if kind in ("literal", "folded"):
        sign = "|" if kind == "literal" else ">"
        chomp, blank = draw(st.sampled_from(["", "-", "+"])), "\n" * draw(st.integers(0, 2))
        return f"{anchor} {sign}{chomp}\n{margin}    some\n{margin}    words\n{blank}"
    leaves = {"plain": " old", "quoted": ' "stdio"', "flow": " [x, *p]", "braces": " {cmd: *q}", "null": " ~"}
    comment = draw(st.sampled_from(["", "", " # mine", "\n\n"]))
    return f" *{draw(st.sampled_from(ANCHORS))}\n" if kind == "alias" else f"{anchor}{leaves[kind]}{comment}\n"


@st.composite
def maps(draw: st.DrawFn, indent: int, depth: int, keys: tuple[str, ...] = ("cmd", "args", "type", "other", "<<")) -> str:
    chosen = draw(st.lists(st.sampled_from(keys), min_size=1, max_size=3, unique=True))
    return "".join(f"{' ' * indent}{key}:{draw(merges if key == '<<' else nodes(indent, depth))}" for key in chosen)


merges = st.sampled_from([" *r\n", " *p\n", " [*r, *q]\n", " {other: *p}\n"])


def made_good(text: str) -> str:
    """Each anchor once, and no alias before it: `r` takes its place, which is there from the beginning."""
    known = {"r"}

    def mend(found: re.Match[str]) -> str:
        anchor, alias = found.groups()
        if anchor is None:
            return found.group() if alias in known else "*r"
        fresh = anchor not in known
        known.add(anchor)
        return found.group() if fresh else ""

    return "r: &r {cmd: theirs}\n" + _MARK.sub(mend, text)


@st.composite
def files(draw: st.DrawFn) -> str:
    keys = draw(st.lists(st.sampled_from(["a", "b", "<<"]), max_size=2, unique=True))
    made = [f"{key}:{draw(merges if key == '<<' else nodes(0, 1))}" for key in keys]
    names = draw(st.lists(st.sampled_from(["x", "everforge", "<<"]), min_size=1, max_size=3, unique=True))
    entries = (draw(merges if name == "<<" else st.one_of(nodes(2, 1), maps(4, 1).map("\n".__add__))) for name in names)
    section = "".join(f"  {name}:{entry}" for name, entry in zip(names, entries, strict=True))
    made.insert(draw(st.integers(0, len(made))), f"extensions:{draw(st.sampled_from(['', '', ' &p', ' # all']))}\n{section}")
    text = "".join(made) + draw(st.sampled_from(["", "last: *p\n", "last: {<<: *q}\n"]))
    return made_good(text) if draw(st.integers(0, 9)) else text


def load(text: str) -> Any:
    """As the library does, or None."""
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, TypeError, RecursionError):
        return None


def others(loaded: Any) -> Any:
    """All but our entry, and the section when it is empty; by what it looks like, since something may stand within itself."""
    section = {name: entry for name, entry in (loaded.get("extensions") or {}).items() if name != "everforge"}
    rest = {key: value for key, value in loaded.items() if key != "extensions"}
    return repr(rest), repr(section)


@settings(max_examples=EXAMPLES, deadline=None)
@given(files())
def test_whatever_stands_for_whatever_everything_else_means_the_same(text: str) -> None:
    loaded = load(text)
    for edit in (put, drop):
        try:
            made = edit(text)
        except Broken as broken:
            assert loaded is None or broken.what == BY_HAND  # noqa: PT017
            continue
        if loaded is None:
            continue  # the library is stricter about merges, and about a name that is given twice
        now = load(made) or {}
        assert made == text or others(now) == others(loaded)
        entry = (now.get("extensions") or {}).get("everforge", {})
        if edit is put:
            assert {key: entry.get(key) for key in FIELDS} == FIELDS
        else:
            assert made == text or "everforge" not in (now.get("extensions") or {})
