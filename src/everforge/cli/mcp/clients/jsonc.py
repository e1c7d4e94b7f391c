"""JSON as editors have it, with comments and commas at the end: what stands where. No I/O, and nothing is changed here.

Not the standard library's reader, because that one forgets where it found things, and an edit needs to know.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NoReturn

from .texts import Broken

DEPTH_MAX = 200  # of what is nested; nobody's settings are, and each takes some of the interpreter's stack
TRIVIA = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*(?s:.)*?\*/)*+")
_STRING = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"')
_OTHER = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_SPACE = re.compile(r"[ \t\r\n]*+")
PASSES_MAX = 8  # as often as the standard library may fail on a file; it counts the lines up to there each time


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)  # NaN and its like, which are no JSON


_STRICT = json.JSONDecoder(parse_constant=_refuse)


@dataclass(slots=True)
class Value:
    start: int
    end: int = 0
    members: list[Member] | None = None  # of an object
    items: list[Value] | None = None  # of a list; what was passed over has neither of them


@dataclass(slots=True)
class Member:
    """Of an object: a name and a value."""

    name: str
    start: int  # of the name's quote
    named: int  # where the name has ended
    value: Value
    comma: int | None = None  # where the comma behind it is, if there is one


@dataclass(slots=True)
class _Scanner:
    text: str
    section: str | None = None  # whose entries are taken apart
    whole: bool = True  # and everything else, too
    failures: int = 0  # of the standard library
    comments: list[int] = field(default_factory=list[int])  # where trivia with a comment in it begins
    commas: list[int] = field(default_factory=list[int])  # those at an end, which strict readers refuse

    def skip(self, at: int) -> int:
        """Past space and comments."""
        space = _SPACE.match(self.text, at)
        end = at if space is None else space.end()
        if not self.text.startswith("/", end):
            return end
        found = TRIVIA.match(self.text, end)
        comment, end = end, end if found is None else found.end()
        if comment != end:
            self.comments.append(comment)
        if self.text.startswith("/*", end):
            raise Broken(self.text, end, "a comment begins that does not end")
        return end

    def value(self, at: int, depth: int) -> Value:
        if depth > DEPTH_MAX:
            raise Broken(self.text, at, f"more than {DEPTH_MAX} things are nested in each other")
        first = self.text[at : at + 1]
        if first == "{":
            return self.object(at, depth)
        if first == "[":
            return self.list(at, depth)
        found = (_STRING if first == '"' else _OTHER).match(self.text, at)
        if found is None:
            raise Broken(self.text, at, "a text is not closed, or has in it what must be escaped" if first == '"' else "a value is missing")
        return Value(at, found.end())

    def object(self, at: int, depth: int) -> Value:
        made = Value(at, members=[])
        assert made.members is not None
        at = self.skip(at + 1)
        while not self.text.startswith("}", at):
            name = _STRING.match(self.text, at)
            if name is None:
                raise Broken(self.text, at, "a name in double quotes or } is missing")
            colon = self.skip(name.end())
            if not self.text.startswith(":", colon):
                raise Broken(self.text, colon, "a colon is missing")
            raw = name.group()
            called = json.loads(raw) if "\\" in raw else raw[1:-1]
            apart = self.whole or depth == 1 or (depth == 0 and called == self.section)
            value = (self.value if apart else self.passed)(self.skip(colon + 1), depth + 1)
            member = Member(called, at, name.end(), value)
            made.members.append(member)
            member.comma, at = self.comma(member.value.end, "}")
        made.end = at + 1
        return made

    def passed(self, at: int, depth: int) -> Value:
        """A value of which only the end matters. The standard library finds that a hundred times as fast, if there are no comments in it."""
        if self.failures < PASSES_MAX:
            try:
                return Value(at, _STRICT.raw_decode(self.text, at)[1])
            except (ValueError, RecursionError):
                self.failures += 1
        self.whole = True  # for this one; nothing in it is tried again
        try:
            return self.value(at, depth)
        finally:
            self.whole = False

    def list(self, at: int, depth: int) -> Value:
        made = Value(at, items=[])
        assert made.items is not None
        at = self.skip(at + 1)
        while not self.text.startswith("]", at):
            made.items.append(self.value(at, depth + 1))
            _, at = self.comma(made.items[-1].end, "]")
        made.end = at + 1
        return made

    def comma(self, at: int, closing: str) -> tuple[int | None, int]:
        """Where it is, and where it goes on behind it."""
        at = self.skip(at)
        if self.text.startswith(closing, at):
            return None, at
        if not self.text.startswith(",", at):
            raise Broken(self.text, at, f"a comma or {closing} is missing")
        behind = self.skip(at + 1)
        if self.text.startswith(closing, behind):
            self.commas.append(at)
        return at, behind


def scan(text: str) -> Value | None:
    """What the text says; None when it is empty, but for comments. Broken says where it is not JSON."""
    return _scan(_Scanner(text))


@lru_cache(maxsize=2)  # an edit asks several times for the text before it, and for the one after it
def outline(text: str, section: str) -> Value | None:
    """The same, but only the entries of a section are taken apart. Some of these files are long, and not for their settings."""
    return _scan(_Scanner(text, section, whole=False))


def scan_value(text: str, at: int) -> Value:
    """The one that begins there, whatever comes behind it."""
    return _Scanner(text).value(at, 0)


def first_liberty(text: str) -> int | None:
    """Where the first comment, or comma at an end, is: what strict readers refuse."""
    scanner = _Scanner(text, whole=False)
    _scan(scanner)
    return min([*scanner.comments, *scanner.commas], default=None)


def _scan(scanner: _Scanner) -> Value | None:
    text = scanner.text
    at = scanner.skip(0)
    if at == len(text):
        return None
    value = scanner.value(at, 0)
    end = scanner.skip(value.end)
    if end != len(text):
        raise Broken(text, end, "something follows where the end should be")
    return value


def plain(text: str, value: Value) -> object:
    """As Python has it. Of two members with one name the last counts, as everywhere."""
    if value.members is not None:
        return {member.name: plain(text, member.value) for member in value.members}
    if value.items is not None:
        return [plain(text, item) for item in value.items]
    raw = text[value.start : value.end]
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):  # a number with more digits than Python reads, or a nest as deep as it can just bear
        return raw


def member(text: str, value: Value, name: str) -> Member | None:
    """The one of that name. Two are an error: readers differ about which of them counts."""
    found = [member for member in value.members or [] if member.name == name]
    if len(found) > 1:
        raise Broken(text, found[1].start, f'"{name}" stands there for the second time')
    return found[0] if found else None
