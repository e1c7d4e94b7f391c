"""YAML: what stands where, as its parser tells it event by event. No I/O, and nothing is changed here.

Not the parser's own tree, because in that an alias stands where its anchor does, and a block ends where the next thing begins, comments and all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import yaml

from .texts import Broken

DEPTH_MAX = 100
_EMPTY = ("", "~", "null", "Null", "NULL")


@dataclass(slots=True)
class Node:
    kind: str  # map, list, scalar or alias
    start: int
    end: int  # behind the last thing that belongs to it; comments do not
    value: str = ""  # of a scalar or an alias
    quoted: bool = False
    flow: bool = False  # in braces or brackets
    marks: tuple[str | None, str | None] = (None, None)  # anchor and tag
    pairs: list[tuple[Node, Node]] = field(default_factory=list["tuple[Node, Node]"])
    items: list[Node] = field(default_factory=list["Node"])

    @property
    def empty(self) -> bool:
        """A null, or braces with nothing in them."""
        if self.marks != (None, None):
            return False
        return (self.kind == "map" and not self.pairs) or (self.kind == "scalar" and not self.quoted and self.value in _EMPTY)


def scan(text: str) -> Node | None:
    """The one document; None when there is none, but for comments. Broken says where it is not YAML."""
    try:
        events = iter(cast(Any, yaml).parse(text, Loader=yaml.SafeLoader))
        return _document(text, events)
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        raise Broken(text, len(text) if mark is None else min(mark.index, len(text)), e.problem or "it cannot be read") from e
    except yaml.reader.ReaderError as e:
        raise Broken(text, min(int(cast(Any, e).position), len(text)), "a character there is none that YAML has") from e


def _document(text: str, events: Iterator[Any]) -> Node | None:
    root: Node | None = None
    documents = 0
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise Broken(text, event.start_mark.index, "a second document begins")
            root = _node(text, next(events), events, 0)
    return None if root is None or (root.kind == "scalar" and root.empty and not root.value) else root


def _node(text: str, event: Any, events: Iterator[Any], depth: int) -> Node:
    start, end = event.start_mark.index, event.end_mark.index
    if depth > DEPTH_MAX:
        raise Broken(text, start, f"more than {DEPTH_MAX} things are nested in each other")
    if isinstance(event, yaml.AliasEvent):
        return Node("alias", start, end, event.anchor)
    marks = (event.anchor, event.tag)
    if isinstance(event, yaml.ScalarEvent):
        return Node("scalar", start, end, event.value, quoted=not event.implicit[0], marks=marks)
    if isinstance(event, yaml.MappingStartEvent):
        return _map(text, Node("map", start, end, flow=bool(event.flow_style), marks=marks), events, depth)
    return _list(text, Node("list", start, end, flow=bool(event.flow_style), marks=marks), events, depth)


def _map(text: str, made: Node, events: Iterator[Any], depth: int) -> Node:
    for event in events:
        if isinstance(event, yaml.MappingEndEvent):
            made.end = event.end_mark.index if made.flow else made.pairs[-1][1].end if made.pairs else made.end
            break
        key = _node(text, event, events, depth + 1)
        value = _node(text, next(events), events, depth + 1)
        value.end = max(value.end, key.end)
        made.pairs.append((key, value))
    return made


def _list(text: str, made: Node, events: Iterator[Any], depth: int) -> Node:
    for event in events:
        if isinstance(event, yaml.SequenceEndEvent):
            made.end = event.end_mark.index if made.flow else made.items[-1].end if made.items else made.end
            break
        made.items.append(_node(text, event, events, depth + 1))
    return made


def pair(text: str, node: Node, name: str) -> tuple[Node, Node] | None:
    """The one of that name. Two are an error: readers differ about which of them counts."""
    found = [(key, value) for key, value in node.pairs if key.kind == "scalar" and key.value == name]
    if len(found) > 1:
        raise Broken(text, found[1][0].start, f'"{name}" stands there for the second time')
    return found[0] if found else None


def plain(node: Node) -> object:
    """As Python has it, as far as it can stand in an entry; what an alias stands for is not looked up."""
    if node.kind == "map":
        return {key.value: plain(value) for key, value in node.pairs}
    if node.kind == "list":
        return [plain(item) for item in node.items]
    if node.quoted or node.kind == "alias":
        return node.value
    if node.value in _EMPTY:
        return None
    if node.value.lower() in ("true", "false"):
        return node.value.lower() == "true"
    return int(node.value) if node.value.isascii() and node.value.isdecimal() and len(node.value) < 19 else node.value


def shape(node: Node) -> object:
    """Everything about it but where it stands."""
    pairs = [(shape(key), shape(value)) for key, value in node.pairs]
    return node.kind, node.value, node.quoted, node.marks, pairs, [shape(item) for item in node.items]
