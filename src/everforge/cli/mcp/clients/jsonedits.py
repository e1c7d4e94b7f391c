"""Changes to JSON with comments: each is an edit of the text at the right place, so that every other byte stays what it was. No I/O."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import cast

from . import jsonc
from .formats import BY_HAND, Fields
from .jsonc import Member, Value
from .texts import Broken, begins_line, cut, line_end, line_start

NAME: str = "JSON"
BYTES_MAX: int = 16 * 1024 * 1024  # Claude Code keeps more than settings in its file
STEP = "  "  # where the file has no indentation of its own
_ENDS_LINE = re.compile(r"[ \t]*+,?[ \t]*+\r?\n")
_REST_OF_LINE = re.compile(r"(?:[ \t]|/\*[^\r\n]*?\*/)*+(?://[^\r\n]*+)?")


@dataclass(frozen=True)
class _Layout:
    """How this file is written."""

    newline: str
    step: str
    lines: bool  # or all in one line
    colon: str  # between a name and its value

    def write(self, value: object, indent: str) -> str:
        """Objects have a line for each member, where the file has lines at all; lists are short, and have one."""
        if not isinstance(value, dict):
            return json.dumps(value, ensure_ascii=False, separators=(self.comma, self.colon))
        members = cast(dict[str, object], value)
        if not self.lines or not members:
            return "{" + self.comma.join(self.member(name, one, indent) for name, one in members.items()) + "}"
        below = indent + self.step
        inner = ",".join(f"{self.newline}{below}{self.member(name, one, below)}" for name, one in members.items())
        return f"{{{inner}{self.newline}{indent}}}"

    def member(self, name: str, value: object, indent: str) -> str:
        return json.dumps(name, ensure_ascii=False) + self.colon + self.write(value, indent)

    @property
    def comma(self) -> str:
        return ", " if self.colon.endswith(" ") else ","


def entries(text: str, section: str) -> dict[str, object]:
    return _entries(text, _root(text, section), section)


def put(text: str, section: str, name: str, fields: Fields, initial: Fields) -> str:
    root = _root(text, section)
    layout = _layout(text, root)
    whole = {**initial, **fields}
    if root is None:
        before = text if not text or text.endswith("\n") else text + layout.newline
        return before + layout.write({section: {name: whole}}, "") + layout.newline
    found = jsonc.member(text, root, section)
    if found is None:
        made = _insert(text, root, section, {name: whole}, _indent(text, root.start), layout)
    elif _section(text, root, section) is None:  # a null
        made = _replace(text, found.value, {name: whole}, _indent(text, found.start), layout)
    else:
        made = _put_entry(text, found, name, fields, initial, layout)
    return _sure((text, root), made, section, name, fields)


def drop(text: str, section: str, name: str) -> str:
    root = _root(text, section)
    found = None if root is None else _section(text, root, section)
    if root is None or found is None or jsonc.member(text, found.value, name) is None:
        return text
    made = _remove(text, found.value, name)
    if len(found.value.members or []) == 1:
        left = cast(Value, _root(made, section))
        emptied = cast(Member, _section(made, left, section))
        if not made[emptied.named : emptied.value.end].strip(" \t\r\n:{}"):  # nor a comment
            made = _remove(made, left, section)
    return _sure((text, root), made, section, name, None)


def liberty(text: str) -> int | None:
    return jsonc.first_liberty(text)


# --- what stands where ---------------------------------------------------------------------------------------------------------------


def _root(text: str, section: str) -> Value | None:
    root = jsonc.outline(text, section)
    if root is not None and root.members is None:
        raise Broken(text, root.start, "an object in { } should be there")
    return root


def _entries(text: str, root: Value | None, section: str) -> dict[str, object]:
    found = None if root is None else _section(text, root, section)
    return {} if found is None else cast(dict[str, object], jsonc.plain(text, found.value))


def _section(text: str, root: Value, section: str) -> Member | None:
    """None when there is none, or when it is null."""
    found = jsonc.member(text, root, section)
    if found is None or text[found.value.start : found.value.end] == "null":
        return None
    if found.value.members is None:
        raise Broken(text, found.value.start, f'"{section}" should be an object in {{ }}')
    return found


def _layout(text: str, root: Value | None) -> _Layout:
    members = [] if root is None else root.members or []
    whole = "" if root is None else text[root.start : root.end]
    first = next((member for member in members if begins_line(text, member.start)), None)
    step = "" if first is None else _indent(text, first.start).removeprefix(_indent(text, cast(Value, root).start))
    tight = bool(members) and re.search(r":\s", text[members[0].start : members[0].value.start]) is None
    lines = "\n" in whole or not members
    return _Layout(line_end(text), step or STEP, lines, ":" if tight and not lines else ": ")


def _indent(text: str, offset: int) -> str:
    """The space that its line begins with."""
    line = text[line_start(text, offset) : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]


# --- putting in -----------------------------------------------------------------------------------------------------------------------


def _put_entry(text: str, section: Member, name: str, fields: Fields, initial: Fields, layout: _Layout) -> str:
    found = jsonc.member(text, section.value, name)
    if found is None:
        return _insert(text, section.value, name, {**initial, **fields}, _indent(text, section.start), layout)
    if found.value.members is None:
        return _replace(text, found.value, {**initial, **fields}, _indent(text, found.start), layout)
    for key in fields:
        jsonc.member(text, found.value, key)  # twice there, it is told before anything has moved
    start = line_start(text, found.start)
    made = text[start : found.value.end]  # its lines alone, which are read again after each field
    named, at = found.start - start, found.value.start - start
    for key, wanted in fields.items():
        entry = jsonc.scan_value(made, at)
        old = jsonc.member(made, entry, key)
        if old is None:
            made = _insert(made, entry, key, wanted, _indent(made, named), layout)
        elif jsonc.plain(made, old.value) != wanted:
            made = _replace(made, old.value, wanted, _indent(made, old.start), layout)
    return text[:start] + made + text[found.value.end :]


def _replace(text: str, old: Value, value: object, indent: str, layout: _Layout) -> str:
    return text[: old.start] + layout.write(value, indent) + text[old.end :]


def _insert(text: str, into: Value, name: str, value: object, indent: str, layout: _Layout) -> str:
    """Behind what is there already; `indent` is that of the line in which the object begins."""
    if not into.members:
        return _insert_first(text, into, name, value, indent, layout)
    last = into.members[-1]
    closed = last.comma is not None  # then ours is, too
    anchor = last.value.end if last.comma is None else last.comma + 1
    if not begins_line(text, last.start):
        piece = layout.member(name, value, indent)
        space = layout.comma[1:]
        return text[:anchor] + (f"{space}{piece}," if closed else f",{space}{piece}") + text[anchor:]
    own = _indent(text, last.start)
    rest = _REST_OF_LINE.match(text, anchor)
    at = anchor if rest is None else rest.end()  # a comment behind the last one stays with it
    piece = f"{layout.newline}{own}{layout.member(name, value, own)}"
    return text[:at] + piece + "," + text[at:] if closed else text[:anchor] + "," + text[anchor:at] + piece + text[at:]


def _insert_first(text: str, into: Value, name: str, value: object, indent: str, layout: _Layout) -> str:
    """Into an object that has nothing in it but space, and perhaps comments."""
    close = into.end - 1
    inner = text[into.start + 1 : close]
    tail = inner[len(inner.rstrip(" \t\r\n")) :]
    below = indent + layout.step
    if "\n" in tail:
        at = close - len(tail) + tail.rfind("\n")
        at -= text[at - 1] == "\r"
        return text[:at] + layout.newline + below + layout.member(name, value, below) + text[at:]
    if not layout.lines:
        return text[:close] + layout.member(name, value, indent) + text[close:]
    return text[:close] + f"{layout.newline}{below}{layout.member(name, value, below)}{layout.newline}{indent}" + text[close:]


# --- taking out -----------------------------------------------------------------------------------------------------------------------


def _remove(text: str, out_of: Value, name: str) -> str:
    members = out_of.members or []
    at = next(i for i, member in enumerate(members) if member.name == name)
    gone, before = members[at], members[at - 1] if at else None
    comma = None if before is None else before.comma
    start = _removed_from(text, gone, out_of.start + 1 if comma is None else comma + 1)
    if gone.comma is None:
        return cut(text, (start, gone.value.end)) if comma is None else cut(text, (comma, comma + 1), (start, gone.value.end))
    end = gone.comma + 1
    if start == gone.start:  # what follows stands where it stood
        end += len(text[end:]) - len(text[end:].lstrip(" \t"))
    return cut(text, (start, gone.value.end), (gone.comma, end))  # what is between them is a comment, if anything


def _removed_from(text: str, gone: Member, behind: int) -> int:
    """Where the space before it begins, its line's end with it; but not more than what comes after `behind`."""
    start = gone.start
    while start > behind and text[start - 1] in " \t":
        start -= 1
    if not begins_line(text, gone.start):
        return gone.start if behind == start and text[behind - 1] == "{" else start
    if "//" in text[behind:start] and not _ENDS_LINE.match(text, gone.value.end):
        return gone.start  # what follows in its line would become a part of the comment that ends the line before
    return start - (2 if text[start - 2 : start] == "\r\n" else 1)


# --- being sure -----------------------------------------------------------------------------------------------------------------------


def _sure(before: tuple[str, Value], after: str, section: str, name: str, fields: Fields | None) -> str:
    """`after`, if it says all that `before` said but for the entry, which has these fields. Nobody's file is written on the strength of a guess."""
    try:
        root = _root(after, section)
        same = _others(*before, section, name) == _others(after, root, section, name)
        entry = _entries(after, root, section).get(name)
    except Broken:
        same, entry = False, None
    found = cast(dict[str, object], entry) if isinstance(entry, dict) else {}
    if not same or (entry is not None) != (fields is not None) or any(found.get(key) != wanted for key, wanted in (fields or {}).items()):
        raise Broken(before[0], 0, BY_HAND)
    return after


def _others(text: str, root: Value | None, section: str, name: str) -> list[object]:
    """Everything but the entry, and but the section if that is all there is in it; in order, and as it is written, comments and all."""
    made: list[object] = []
    for member in [] if root is None else root.members or []:
        if member.name == section:
            below = [(one.name, text[one.value.start : one.value.end]) for one in member.value.members or [] if one.name != name]
            made += [(section, below)] if below else []
        else:
            made.append((member.name, text[member.value.start : member.value.end]))
    return made
