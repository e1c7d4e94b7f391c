"""Changes to YAML: each is an edit of whole lines, or inside of braces, so that comments, order, anchors and quotes stay what they were. No I/O."""

from __future__ import annotations

import json
import re
from typing import cast

from . import yamltree
from .formats import BY_HAND, Fields
from .texts import Broken, begins_line, cut, line_end, line_start
from .yamltree import Node

NAME: str = "YAML"
STEP = 2  # where the file has no indentation of its own
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*")
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}  # which mean something else without quotes


def entries(text: str, section: str) -> dict[str, object]:
    root = _root(text)
    found = None if root is None else _section(text, root, section)
    return {} if found is None else cast(dict[str, object], yamltree.plain(found[1]))


def put(text: str, section: str, name: str, fields: Fields, initial: Fields) -> str:
    root = _root(text)
    whole = {**initial, **fields}
    step = _step(text, root)
    if root is None or root.empty:
        made = _begin(text, root, _lines(section, {name: whole}, 0, step))
    elif (old := yamltree.pair(text, root, section)) is None:
        made = _insert(text, root, section, {name: whole}, step)
    elif _section(text, root, section) is None:
        made = _replace(text, root, old, {name: whole}, step)
    elif (entry := yamltree.pair(text, old[1], name)) is None:
        made = _insert(text, old[1], name, whole, step)
    elif entry[1].kind != "map" or entry[1].empty:
        made = _replace(text, old[1], entry, whole, step)
    else:
        made = _put_fields(text, section, name, fields, step)
    return _sure(text, made, section, name, fields)


def drop(text: str, section: str, name: str) -> str:
    root = _root(text)
    found = None if root is None else _section(text, root, section)
    if root is None or found is None or yamltree.pair(text, found[1], name) is None:
        return text
    if len(found[1].pairs) > 1:
        gone = _remove(text, found[1], name)
    elif root.flow or found[1].flow or not _commented(text, found):
        gone = _remove(text, root, section)
    else:
        gone = _empty(_remove(text, found[1], name), found[0])
    return _sure(text, gone, section, name, None)


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
    if found[1].kind != "map":
        raise Broken(text, found[1].start, f'"{section}" should hold names with values')
    return found


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
        end = into.pairs[-1][1].end
        return text[:end] + f", {_scalar(name)}: {_inline(value)}" + text[end:]
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
    if not several and node.kind == "scalar" and node.value and not text[key.end : node.start].count("\n"):
        return text[: node.start] + _scalar(value) + text[node.end :]
    start, end = line_start(text, key.start), _behind_line(text, node.end)
    if node.empty and several and node.start == node.end:  # nothing stands there: the lines come below, and a comment stays
        return _insert_lines(text, end, _lines("", value, _column(text, key), step)[1:])
    newline, lines = line_end(text), _lines(key.value, value, _column(text, key), step)
    comment = text[node.end : end].strip() if node.empty else ""
    lines[0] += f"  {comment}" if comment.startswith("#") else ""
    return text[:start] + newline.join(lines) + (newline if text[start:end].endswith("\n") else "") + text[end:]


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
    at = next(i for i, (key, _) in enumerate(out_of.pairs) if key.value == name)
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


def _sure(before: str, after: str, section: str, name: str, fields: Fields | None) -> str:
    """`after`, if it says all that `before` said but for the entry, which has these fields. Nobody's file is written on the strength of a guess."""
    try:
        same = _others(before, section, name) == _others(after, section, name)
        entry = entries(after, section).get(name)
    except Broken:
        same, entry = False, None
    found = cast(dict[str, object], entry) if isinstance(entry, dict) else {}
    if not same or (entry is not None) != (fields is not None) or any(found.get(key) != wanted for key, wanted in (fields or {}).items()):
        raise Broken(before, 0, BY_HAND)
    return after


def _others(text: str, section: str, name: str) -> list[object]:
    """Everything but the entry, and but the section if that is all there is in it; in order."""
    root = _root(text)
    made: list[object] = []
    for key, value in [] if root is None else root.pairs:
        if key.value == section:
            below = [(yamltree.shape(one), yamltree.shape(other)) for one, other in value.pairs if one.value != name]
            made += [(section, value.marks, below)] if below else []
        else:
            made.append((yamltree.shape(key), yamltree.shape(value)))
    return made
