"""Configuration files of other programs: read as those do, and checked after something of ours was put in or taken out, whatever their format."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import strategies as st

from everforge.cli.mcp.clients.texts import Broken

NAME = "everforge"


def json_of(text: str) -> Any:
    """By the standard library, after comments and commas at ends are gone."""
    text = re.sub(r'("(?:\\.|[^"\\])*")|//[^\r\n]*|/\*.*?\*/', lambda found: found.group(1) or " ", text, flags=re.DOTALL)
    return json.loads(re.sub(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', lambda found: found.group(1) or "", text))


def is_within(part: Sequence[Any], whole: Sequence[Any]) -> bool:
    """Is all of `part` in `whole`, in its order?"""
    rest = iter(whole)
    return all(one in rest for one in part)


def without(value: dict[str, Any], name: str) -> dict[str, Any]:
    return {other: inner for other, inner in value.items() if other != name}


def put_somewhere(draw: st.DrawFn, value: dict[str, Any], name: str, inner: Any) -> dict[str, Any]:
    """With a member more, at any place among those that are there."""
    items = list(value.items())
    items.insert(draw(st.integers(0, len(items))), (name, inner))
    return dict(items)


@dataclass(frozen=True)
class Edits:
    """Of one format, which another library reads: how our entry comes into its section, and out again."""

    section: str
    put: Callable[[str], str]
    drop: Callable[[str, str, str], str]
    parse: Callable[[str], Any]

    def check_put(self, text: str, value: dict[str, Any], entry: dict[str, Any]) -> str:
        """It is there, all else says what it said, and a second time changes nothing."""
        made = self.put(text)
        assert self.parse(made) == {**value, self.section: {**value.get(self.section, {}), NAME: entry}}
        assert self.put(made) == made
        return made

    def check_drop(self, text: str, value: dict[str, Any], name: str) -> None:
        """It is gone, and its neighbours stay."""
        gone = self.parse(self.drop(text, self.section, name)) or {}
        assert gone.get(self.section, {}) == without(value[self.section], name)
        assert without(gone, self.section) == without(value, self.section)

    def check_broken(self, text: str, line: int, column: int, what: str) -> None:
        """It is refused, and what is wrong is named with its place."""
        with pytest.raises(Broken) as caught:
            self.put(text)
        assert (caught.value.line, caught.value.column) == (line, column)
        assert what in caught.value.what
