"""Changes to YAML: each is an edit of whole lines, or inside of braces, so that comments, order, anchors and quotes stay what they were. No I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import cast

from . import yamltree
from .formats import BY_HAND, Fields
from .texts import Broken, begins_line, cut, line_end, line_start
from .yamltree import Node

NAME: str = "YAML"
BYTES_MAX: int = 256 * 1024  # its parser takes a second or two for as much
STEP = 2  # where the file has no indentation of its own
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*")
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}  # which mean something else without quotes


def entries(text: str, section: str) -> dict[str, object]:
    root = _root(text)
    found = None if root is None else _section(text, root, section)
    return {} if found is None else cast(dict[str, object], yamltree.plain(found[1]))


def put(text: str, section: str, name: str, fields: Fields, initial: Fields) -> str:
    root = _root(text)
    entry = _entry(text, root, section, name)
    if entry is not None:
        for key in fields:
            yamltree.pair(text, entry[1], key)  # twice there, it is told before anything has moved
    with _by_hand(text):
        made = _put(text, root, section, name, fields, initial)
        return _sure((text, root), made, section, name, fields)


def _put(text: str, root: Node | None, section: str, name: str, fields: Fields, initial: Fields) -> str:
    whole = {**initial, **fields}
    step = _step(text, root)
    if root is None or root.empty:
        return _begin(text, root, _lines(section, {name: whole}, 0, step))
    old = yamltree.pair(text, root, section)
    if old is None:
        return _insert(text, root, section, {name: whole}, step)
    if _section(text, root, section) is None:
        return _replace(text, root, old, {name: whole}, step)
    entry = yamltree.pair(text, old[1], name)
    if entry is None:
        return _insert(text, old[1], name, whole, step)
    if entry[1].kind != "map" or entry[1].empty:
        return _replace(text, old[1], entry, whole, step)
    return _put_fields(text, section, name, fields, step)


def drop(text: str, section: str, name: str) -> str:
    root = _root(text)
    found = None if root is None else _section(text, root, section)
    if root is None or found is None or yamltree.pair(text, found[1], name) is None:
        return text
    with _by_hand(text):
        if len(found[1].pairs) > 1:
            gone = _remove(text, found[1], name)
        elif root.flow or found[1].flow or not _commented(text, found):
            gone = _remove(text, root, section)
        else:
            gone = _empty(_remove(text, found[1], name), found[0])
        return _sure((text, root), gone, section, name, None)


def liberty(text: str) -> int | None:
    return None  # comments are a part of YAML


# --- what stands where ---------------------------------------------------------------------------------------------------------------


def _root(text: str) -> Node | None:
    root = yamltree.scan(text)
    if root is not None and root.kind != "map":
        raise Broken(text, root.start, "names with values should be there")
    return root


def _section(text: str, root: Node, section: str) -> tuple[Node, Node] | None:
    """None when there is none, or when it is empty."""
    found = yamltree.pair(text, root, section)
    if found is None or found[1].empty:
        return None
    if found[1].kind == "alias":
        raise Broken(text, found[1].start, BY_HAND)
    if found[1].kind != "map":
        raise Broken(text, found[1].start, f'"{section}" should hold names with values')
    return found


def _entry(text: str, root: Node | None, section: str, name: str) -> tuple[Node, Node] | None:
    found = None if root is None else _section(text, root, section)
    return None if found is None else yamltree.pair(text, found[1], name)


def _column(text: str, node: Node) -> int:
    return node.start - line_start(text, node.start)


def _step(text: str, root: Node | None) -> int:
    """By how much this file goes in."""
    for key, value in [] if root is None else root.pairs:
        if value.kind == "map" and not value.flow and value.pairs:
            return max(1, _column(text, value.pairs[0][0]) - _column(text, key))
    return STEP


def _behind_line(text: str, offset: int) -> int:
    """Where the next line begins."""
    if offset and text[offset - 1] == "\n":
        return offset
    end = text.find("\n", offset)
    return len(text) if end < 0 else end + 1


# --- writing --------------------------------------------------------------------------------------------------------------------------


def _lines(name: str, value: object, indent: int, step: int) -> list[str]:
    margin = " " * indent
    if isinstance(value, dict) and value:
        members = cast(dict[str, object], value)
        return [f"{margin}{_scalar(name)}:", *(line for key, one in members.items() for line in _lines(key, one, indent + step, step))]
    if isinstance(value, list) and value:
        return [f"{margin}{_scalar(name)}:", *(f"{margin}{' ' * step}- {_scalar(one)}" for one in cast(list[object], value))]
    return [f"{margin}{_scalar(name)}: {_scalar(cast(object, value))}"]


def _scalar(value: object) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return '"' + "".join(_letter(letter) for letter in value) + '"'


def _letter(letter: str) -> str:
    if letter in '"\\':
        return "\\" + letter
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"


def _inline(value: object) -> str:
    """Inside of braces, where it is all but JSON."""
    if isinstance(value, dict):
        members = cast(dict[str, object], value)
        return "{" + ", ".join(f"{_scalar(key)}: {_inline(one)}" for key, one in members.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_inline(one) for one in cast(list[object], value)) + "]"
    return _scalar(value)


def _begin(text: str, root: Node | None, lines: list[str]) -> str:
    """In a file that says nothing yet."""
    newline = line_end(text)
    block = newline.join(lines)
    if root is not None:  # braces
        return text[: root.start] + block + text[root.end :] + ("" if text[root.end :] else newline)
    return text + ("" if not text or text.endswith("\n") else newline) + block + newline


def _insert(text: str, into: Node, name: str, value: object, step: int) -> str:
    """Behind what is there already."""
    if into.flow:
        end, comma = (into.pairs[-1][1].end, ", ") if into.pairs else (into.end - 1, "")
        return text[:end] + f"{comma}{_scalar(name)}: {_inline(value)}" + text[end:]
    lines = _lines(name, value, _column(text, into.pairs[0][0]), step)
    return _insert_lines(text, _behind_line(text, into.end), lines)


def _insert_lines(text: str, at: int, lines: list[str]) -> str:
    newline = line_end(text)
    block = newline.join(lines)
    return text[:at] + newline + block if at == len(text) and not text.endswith("\n") else text[:at] + block + newline + text[at:]


def _replace(text: str, inside: Node, old: tuple[Node, Node], value: object, step: int) -> str:
    """The value of a pair. A short one gives way where it stands; else its lines do."""
    key, node = old
    if inside.flow:
        return text[: node.start] + _inline(value) + text[node.end :]
    several = _is_several(value)
    if not several and node.kind == "scalar" and node.value and not node.block and not text[key.end : node.start].count("\n"):
        return text[: node.start] + _scalar(value) + text[node.end :]
    start, end = line_start(text, key.start), _behind_line(text, _behind_words(text, node))
    if node.empty and several and node.start == node.end:  # nothing stands there: the lines come below, and a comment stays
        return _insert_lines(text, end, _lines("", value, _column(text, key), step)[1:])
    newline, lines = line_end(text), _lines(key.value, value, _column(text, key), step)
    comment = text[node.end : end].rstrip() if node.empty else ""
    if comment.lstrip().startswith("#"):
        lines[0] += " " * comment.startswith("#") + comment
    return text[:start] + newline.join(lines) + (newline if text[start:end].endswith("\n") else "") + text[end:]


def _behind_words(text: str, node: Node) -> int:
    """Where it ends; empty lines behind a block of lines are not a part of it."""
    return node.start + len(text[node.start : node.end].rstrip("\r\n")) if node.block else node.end


def _is_several(value: object) -> bool:
    return isinstance(value, dict | list)


def _put_fields(text: str, section: str, name: str, fields: Fields, step: int) -> str:
    for key, wanted in fields.items():
        root = cast(Node, _root(text))  # anew: the places have moved
        entry = cast("tuple[Node, Node]", yamltree.pair(text, cast("tuple[Node, Node]", yamltree.pair(text, root, section))[1], name))[1]
        old = yamltree.pair(text, entry, key)
        if old is None:
            text = _insert(text, entry, key, wanted, step)
        elif yamltree.plain(old[1]) != wanted:
            text = _replace(text, entry, old, wanted, step)
    return text


# --- taking out -----------------------------------------------------------------------------------------------------------------------


def _remove(text: str, out_of: Node, name: str) -> str:
    at = next(i for i, (key, _) in enumerate(out_of.pairs) if key.says(name))
    key, value = out_of.pairs[at]
    if out_of.flow:
        if at:
            return cut(text, (out_of.pairs[at - 1][1].end, value.end))
        return cut(text, (key.start, out_of.pairs[1][0].start if len(out_of.pairs) > 1 else value.end))
    if not begins_line(text, key.start):
        raise Broken(text, key.start, BY_HAND)
    start, end = line_start(text, key.start), _behind_line(text, value.end)
    if end == len(text) and not text.endswith("\n") and start:
        start -= 2 if text[start - 2 : start] == "\r\n" else 1
    return cut(text, (start, end))


def _commented(text: str, section: tuple[Node, Node]) -> bool:
    """Is there a comment, or an anchor, that is not the entry's and would go with the section?"""
    key, value = section
    return value.marks != (None, None) or "#" in text[key.end : value.pairs[0][0].start]


def _empty(text: str, key: Node) -> str:
    """Braces, in the line where the section begins, say that nothing is in it."""
    line = text[key.end : _behind_line(text, key.end)]
    at = key.end + len(line.partition("#")[0].rstrip())
    return text[:at] + " {}" + text[at:]


# --- being sure -----------------------------------------------------------------------------------------------------------------------


@contextmanager
def _by_hand(text: str) -> Generator[None]:
    """What is wrong with a text that was made here is no fault of the file's, which could be read."""
    try:
        yield
    except Broken as e:
        raise Broken(text, 0, BY_HAND) from e


def _sure(before: tuple[str, Node | None], after: str, section: str, name: str, fields: Fields | None) -> str:
    """`after`, if it says all that `before` said but for the entry, which has these fields. Nobody's file is written on the strength of a guess.

    What others say with our words, by aliases and merges, must be the same, too.
    """
    text, root = before
    if after == text:
        return after
    now, shapes = _root(after), yamltree.Shapes()
    found = _entry(after, now, section, name)
    same = _others(root, section, name, shapes) == _others(now, section, name, shapes)
    if not same or (found is None) != (fields is None) or (found is None and _is_merged(after, now, section, name)):
        raise Broken(text, 0, BY_HAND)
    entry = cast(dict[str, object], yamltree.plain(found[1])) if found is not None and found[1].kind == "map" else {}
    if any(entry.get(key) != wanted for key, wanted in (fields or {}).items()):
        raise Broken(text, 0, BY_HAND)
    return after


def _is_merged(text: str, root: Node | None, section: str, name: str) -> bool:
    """Is an entry of that name brought in from somewhere else?"""
    found = None if root is None else _section(text, root, section)
    return found is not None and yamltree.merged(found[1], name) is not None


def _others(root: Node | None, section: str, name: str, shapes: yamltree.Shapes) -> list[object]:
    """Everything but the entry, and but the section if that is all there is in it; in order."""
    if root is None:
        return [None, None]
    shapes.of(root)  # from the beginning, so that what aliases stand for is known when they come
    own = any(key.says(section) for key, _ in root.pairs)
    hidden = None if own else yamltree.merged(root, section)  # what the section was, or would be, without one here
    made: list[object] = [root.marks if root.marks != (None, None) else None, None if hidden is None else shapes.of(hidden)]
    for key, value in root.pairs:
        if key.says(section):
            below = [(shapes.of(one), shapes.of(other)) for one, other in value.pairs if not one.says(name)]
            made += [(section, value.marks, below)] if below else []
        else:
            made.append((shapes.of(key), shapes.of(value)))
    return made
