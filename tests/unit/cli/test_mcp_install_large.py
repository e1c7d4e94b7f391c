"""Files of megabytes, as Claude Code keeps them: how often they are gone through, and not how long that takes on some computer or other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from everforge.cli.failures import LocalTrouble
from everforge.cli.mcp.clients import changes, files, jsonc, jsonedits, yamledits, yamltree
from everforge.cli.mcp.clients.catalogue import CLIENTS
from everforge.cli.mcp.clients.files import Rights
from everforge.cli.mcp.clients.texts import Broken, changed_letters

CLIENT = CLIENTS["claude-code"]
FIELDS = CLIENT.fields(["/bin/everforge", "mcp", "serve"], {"EVERFORGE_DATA": "/data"})
ITEMS = 2000  # in the long part of a file
OLD = {"type": "stdio", "command": "old", "args": [], "env": {}}


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many values were looked at one by one since it was asked last."""
    numbers = [0]
    real: Any = jsonc._Scanner.value  # pyright: ignore[reportPrivateUsage]

    def value(self: Any, at: int, depth: int) -> Any:
        numbers[0] += 1
        return real(self, at, depth)

    monkeypatch.setattr(jsonc._Scanner, "value", value)  # pyright: ignore[reportPrivateUsage]

    def asked() -> int:
        jsonc.outline.cache_clear()
        number, numbers[0] = numbers[0], 0
        return number

    return asked


def long(entry: Any = None, comment: str = "") -> str:
    servers = {"mcpServers": {"a": {}, **({} if entry is None else {"everforge": entry})}}
    return json.dumps({"history": [{"n": 1}] * ITEMS, **servers, "last": [0] * ITEMS}, indent=1).replace('"n"', comment + '"n"')


def install(path: Path) -> changes.Plan:
    return changes.plan_install(CLIENT, path, "everforge", FIELDS, Rights())


@pytest.mark.parametrize("entry", [None, OLD], ids=["new", "old"])
def test_what_is_not_of_the_section_is_passed_over(entry: Any, tmp_path: Path, looked_at: Callable[[], int]) -> None:
    path = tmp_path / "claude.json"
    path.write_text(long(entry))
    plan = install(path)
    assert plan.data is not None
    assert json.loads(plan.data) == {**json.loads(long()), "mcpServers": {"a": {}, "everforge": FIELDS}}
    path.write_bytes(plan.data)
    gone = changes.plan_uninstall(CLIENT, path, "everforge")
    assert gone.data == long().encode()
    assert looked_at() < ITEMS / 10


@pytest.mark.parametrize("entry", [None, OLD], ids=["new", "old"])
def test_with_comments_all_over_it_is_gone_through_no_oftener_for_many_fields(entry: Any, tmp_path: Path, looked_at: Callable[[], int]) -> None:
    path = tmp_path / "claude.json"
    path.write_text(long(entry, "// mine\n"))
    jsonc.scan(path.read_text())
    once = looked_at()
    assert once > 3 * ITEMS
    plan = install(path)
    assert plan.data is not None
    assert looked_at() < 3.5 * once, "the file once, and once for what a strict reader refuses, and the new one once"
    path.write_bytes(plan.data)
    assert changes.plan_uninstall(CLIENT, path, "everforge").data == long(None, "// mine\n").encode()
    assert looked_at() < 3.5 * once


def test_backups_that_cannot_be_the_file_of_before_are_not_gone_through(tmp_path: Path, looked_at: Callable[[], int]) -> None:
    path = tmp_path / "claude.json"
    path.write_text(long(FIELDS, "// mine\n"))
    changes.plan_uninstall(CLIENT, path, "everforge")
    alone = looked_at()
    for number in range(files.BACKUPS_MAX):
        path.with_name(f"claude.json.everforge-backup-20260101-00000{number}").write_text(long(None, f"// other {number}\n"))
    changes.plan_uninstall(CLIENT, path, "everforge")
    assert looked_at() == alone


def test_a_file_with_comments_in_many_places_is_not_tried_over_and_over(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []
    real: Any = jsonc._STRICT.raw_decode  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(jsonc._STRICT, "raw_decode", lambda text, at: (tries.append(at), real(text, at))[1])  # pyright: ignore
    text = "{" + ",".join(f'"k{number}": [/* */ [/* */ [1]]]' for number in range(1000)) + "}"
    assert set(jsonedits.entries(jsonedits.put(text, "servers", "everforge", FIELDS, {}), "servers")) == {"everforge"}
    assert len(tries) <= 5 * jsonc.PASSES_MAX


@pytest.mark.parametrize(
    ("wrong", "column", "what"),
    [
        ("NaN", 7, "a value is missing"),
        ("[1, Infinity]", 11, "a value is missing"),
        ("[1 2]", 10, "a comma or ] is missing"),
        ('{"b": "\t"}', 13, "a text is not closed"),
        ("01", 8, "a comma or } is missing"),
        ("[" * 100_000, 207, "more than 200 things"),
    ],
)
def test_what_is_wrong_in_a_part_that_is_passed_over_is_named_with_its_place(wrong: str, column: int, what: str) -> None:
    with pytest.raises(Broken, match=what) as caught:
        jsonedits.put(f'{{"a": {wrong}, "servers": {{}}}}', "servers", "everforge", FIELDS, {})
    assert (caught.value.line, caught.value.column) == (1, column)


def test_a_liberty_is_found_wherever_it_is() -> None:
    for text, at in (('{"a": [1,], "b": 1}', 8), ('{"a": {"b": [2 /* */]}}', 15), ('{"a": [1], "b": {"c": 1}} // ', 26)):
        assert jsonc.first_liberty(text) == at
    assert jsonc.first_liberty('{"a": ["/* */", "//", ",]"]}') is None


def test_an_entry_in_one_line_is_changed_in_place() -> None:
    text = '{"servers": {"a": {}, "everforge": {"command": "old", "mine": 1}, "b": 2}, "c": [3]}'
    made = jsonedits.put(text, "servers", "everforge", {"command": "new", "args": ["x"], "env": {}}, {})
    assert made == text.replace('"old", "mine": 1', '"new", "mine": 1, "args": ["x"], "env": {}')


def test_a_field_that_is_there_twice_is_named_where_it_stands() -> None:
    with pytest.raises(Broken, match='"args" stands there for the second time') as caught:
        jsonedits.put('{"servers": {"everforge": {\n"command": 1,\n"args": 1, "args": 2}}}', "servers", "everforge", FIELDS, {})
    assert (caught.value.line, caught.value.column) == (3, 12)


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [("", "", 0), ("abc", "abc", 0), ("ad", "abcd", 0), ("axd", "abcd", 1), ("xyz", "", 3), ("", "xyz", 0), ("aa", "aaa", 0), ("abcd", "ad", 2)],
)
def test_how_much_of_a_text_has_changed_is_told(old: str, new: str, changed: int) -> None:
    assert changed_letters(old, new) == changed


@pytest.mark.parametrize(("client", "longest"), [("claude-code", "16 MB"), ("goose", "256 KB")])
def test_a_file_longer_than_anybody_waits_for_is_refused(client: str, longest: str, tmp_path: Path) -> None:
    path, there = tmp_path / "config", CLIENTS[client]
    path.write_bytes(b'{"a": "' + b"x" * (there.format.BYTES_MAX - 9) + b'"}')
    assert changes.plan_install(there, path, "everforge", {}, Rights()).change == "added"
    assert changes.plan_uninstall(there, path, "everforge").change == "absent"
    path.write_bytes(path.read_bytes() + b"\n")
    for plan in (lambda: changes.plan_install(there, path, "everforge", {}, Rights()), lambda: changes.plan_uninstall(there, path, "everforge")):
        with pytest.raises(LocalTrouble, match=f"is longer than {longest}, which is no configuration: nothing was changed"):
            plan()


def test_yaml_is_parsed_once_for_each_text_there_is_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    real: Any = yaml.parse  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    monkeypatch.setattr(yaml, "parse", lambda text, **words: (parsed.append(text), real(text, **words))[1])  # pyright: ignore
    yamltree.scan.cache_clear()
    text = "a: 1\nextensions:\n  b: {}\n"
    assert "everforge" not in yamledits.entries(text, "extensions")
    made = yamledits.put(text, "extensions", "everforge", FIELDS, {})
    assert parsed == [text, made]
