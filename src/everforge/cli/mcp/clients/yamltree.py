"""YAML: what stands where, as its parser tells it event by event. No I/O, and nothing is changed here.

Not the parser's own tree, because in that an alias stands where its anchor does, and a block ends where the next thing begins, comments and all.
An alias is never written out: a few lines can stand for more than any memory holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

import yaml

from .formats import BY_HAND
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
    block: bool = False  # a scalar of whole lines, behind | or >
    marks: tuple[str | None, str | None] = (None, None)  # anchor and tag
    pairs: list[tuple[Node, Node]] = field(default_factory=list["tuple[Node, Node]"])
    items: list[Node] = field(default_factory=list["Node"])
    target: Node | None = None  # what an alias stands for

    @property
    def empty(self) -> bool:
        """A null, or braces with nothing in them."""
        if self.marks != (None, None):
            return False
        return (self.kind == "map" and not self.pairs) or (self.kind == "scalar" and not self.quoted and self.value in _EMPTY)

    @property
    def meant(self) -> Node:
        return self if self.target is None else self.target

    def says(self, word: str) -> bool:
        """As a key."""
        return self.meant.kind == "scalar" and self.meant.value == word

    @property
    def sources(self) -> list[Node]:
        """The maps that are merged into this one, the first that counts first."""
        merged = [value.meant for key, value in self.pairs if key.kind == "scalar" and not key.quoted and key.value == "<<"]
        return [one for value in merged for one in ([item.meant for item in value.items] if value.kind == "list" else [value])]


@lru_cache(maxsize=2)  # an edit asks several times for the text before it, and for the one after it
def scan(text: str) -> Node | None:
    """The one document; None when there is none, but for comments. Broken says where it is not YAML."""
    try:
        events = iter(cast(Any, yaml).parse(text, Loader=yaml.SafeLoader))
        return _Reader(text, events).document()
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        raise Broken(text, len(text) if mark is None else min(mark.index, len(text)), e.problem or "it cannot be read") from e
    except yaml.reader.ReaderError as e:
        raise Broken(text, min(int(cast(Any, e).position), len(text)), "a character there is none that YAML has") from e


@dataclass(slots=True)
class _Reader:
    text: str
    events: Iterator[Any]
    anchors: dict[str, Node] = field(default_factory=dict[str, Node])  # a second one of that name takes the place of the first

    def document(self) -> Node | None:
        root: Node | None = None
        documents = 0
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise Broken(self.text, event.start_mark.index, "a second document begins")
                root = self.node(next(self.events), 0)
        return None if root is None or (root.kind == "scalar" and root.empty and not root.value) else root

    def node(self, event: Any, depth: int) -> Node:
        start, end = event.start_mark.index, event.end_mark.index
        if depth > DEPTH_MAX:
            raise Broken(self.text, start, f"more than {DEPTH_MAX} things are nested in each other")
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event, Node("alias", start, end, event.anchor))
        made = Node("scalar", start, end, marks=(event.anchor, event.tag))
        if event.anchor is not None:
            self.anchors[event.anchor] = made
        if isinstance(event, yaml.ScalarEvent):
            made.value, made.quoted, made.block = event.value, not event.implicit[0], event.style in ("|", ">")
            return made
        made.kind, made.flow = "map" if isinstance(event, yaml.MappingStartEvent) else "list", bool(event.flow_style)
        return self.map(made, depth) if made.kind == "map" else self.list(made, depth)

    def alias(self, event: Any, made: Node) -> Node:
        made.target = self.anchors.get(event.anchor)
        if made.target is None:
            raise Broken(self.text, made.start, "an alias stands there for something that nothing before it is called")
        return made

    def map(self, made: Node, depth: int) -> Node:
        for event in self.events:
            if isinstance(event, yaml.MappingEndEvent):
                made.end = event.end_mark.index if made.flow else made.pairs[-1][1].end if made.pairs else made.end
                break
            key = self.node(event, depth + 1)
            value = self.node(next(self.events), depth + 1)
            value.end = max(value.end, key.end)
            made.pairs.append((key, value))
        return made

    def list(self, made: Node, depth: int) -> Node:
        for event in self.events:
            if isinstance(event, yaml.SequenceEndEvent):
                made.end = event.end_mark.index if made.flow else made.items[-1].end if made.items else made.end
                break
            made.items.append(self.node(event, depth + 1))
        return made


def pair(text: str, node: Node, name: str) -> tuple[Node, Node] | None:
    """The one of that name. Two are an error: readers differ about which of them counts."""
    found = [(key, value) for key, value in node.pairs if key.says(name)]
    if len(found) > 1:
        raise Broken(text, found[1][0].start, f'"{name}" stands there for the second time')
    if found and found[0][0].kind == "alias":
        raise Broken(text, found[0][0].start, BY_HAND)
    return found[0] if found else None


def plain(node: Node) -> object:
    """As Python has it, as far as it can stand in an entry; what an alias stands for is not looked up."""
    if node.kind == "map":
        return {key.value: plain(value) for key, value in node.pairs}
    if node.kind == "list":
        return [plain(item) for item in node.items]
    if node.kind == "alias":
        return f"*{node.value}"
    if node.quoted:
        return node.value
    if node.value in _EMPTY:
        return None
    if node.value.lower() in ("true", "false"):
        return node.value.lower() == "true"
    return int(node.value) if node.value.isascii() and node.value.isdecimal() and len(node.value) < 19 else node.value


def merged(node: Node, name: str) -> Node | None:
    """What a map gets under that name from those that are merged into it, if it has nothing there itself."""
    waiting, seen = list(reversed(node.sources)), {id(node)}
    while waiting:
        source = waiting.pop()
        if id(source) in seen:
            continue
        seen.add(id(source))
        for key, value in source.pairs:
            if key.says(name):
                return value.meant
        waiting += reversed(source.sources)
    return None


class Shapes:
    """A number for all that a node says, but not where. Two have the same one only if they say the same, whatever their aliases stand for.

    Each node is looked at once, in the order of the text, so that an alias costs no more than any other node.
    """

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._known: dict[int, tuple[int, Node]] = {}  # by where it is in memory, and held there

    def of(self, node: Node) -> int:
        if id(node) in self._known:
            return self._known[id(node)][0]
        made: object = (
            node.kind,
            node.value,
            node.quoted,
            node.marks,
            tuple((self.of(key), self.of(value)) for key, value in node.pairs),
            tuple(self.of(item) for item in node.items),
            self._target(node),
        )
        number = self._numbers.setdefault(made, len(self._numbers))
        self._known[id(node)] = number, node
        return number

    def _target(self, node: Node) -> int | None:
        """What stands within itself is like nothing else: whether an edit changed it cannot be told."""
        if node.target is None:
            return None
        known = self._known.get(id(node.target))
        return -id(node) if known is None else known[0]
