"""What the other languages need of `everforge.wire`, found by looking at it: types of bodies, entries of the tape, errors, sentences."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, get_args, get_origin, get_type_hints

from everforge.wire import api, audit, errors, events

MODULES = (
    "base", "egress", "files", "identity", "instructions", "machines", "secrets", "server", "snapshots", "tape", "webhooks", "audit",
)  # fmt: skip


@dataclass(frozen=True)
class Field:
    name: str
    hint: Any
    required: bool
    about: str  # the comment behind it, for whoever reads the other language


@dataclass(frozen=True)
class Shape:
    name: str
    fields: tuple[Field, ...]
    is_request: bool
    about: str


@dataclass(frozen=True)
class Choice:
    """A few words that a value may be."""

    name: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Mistake:
    """A class of the error tree."""

    name: str
    parent: str | None
    code: str
    http_status: int
    retry: str
    about: str


def shapes() -> list[Shape]:
    found = [_shape(cls) for cls in (audit.AuditEntry, audit.AuditHead)]
    for module in MODULES:
        members = vars(import_module(f"everforge.wire.api.{module}"))
        for cls in members.values():
            own = inspect.isclass(cls) and dataclasses.is_dataclass(cls) and cls.__module__.endswith(f"api.{module}")
            if own and cls not in (api.Request, api.Query):
                found.append(_shape(cls))
    return found


def choices() -> list[Choice]:
    found = [Choice("EndKind", get_args(events.EndKind)), Choice("Stream", get_args(events.Stream)), Choice("Retry", get_args(errors.Retry))]
    for module in MODULES:
        for name, value in vars(import_module(f"everforge.wire.api.{module}")).items():
            if get_origin(value) is Literal and not any(choice.name == name for choice in found):
                found.append(Choice(name, get_args(value)))
    return found


def choice_of(hint: Any) -> str | None:
    """The name of these words, where they have one."""
    words = get_args(hint)
    return next((choice.name for choice in choices() if choice.words == words), None)


def entries() -> list[Shape]:
    """Of the tape, as `server.views.entry` makes them: place and time first."""
    place = (
        Field("position", int, True, ""),
        Field("cursor", int, True, "give it as `after` to go on behind this entry"),
        Field("time", str, True, ""),
    )
    own = {f.name for f in dataclasses.fields(events.Event)}
    found: list[Shape] = []
    for kind, cls in events.KINDS.items():
        shape = _shape(cls)
        fields = [f for f in shape.fields if f.name not in own]
        if kind == "output":
            fields = [dataclasses.replace(f, name="seq") if f.name == "first_seq" else f for f in fields]
        elif kind == "accepted":
            fields = [dataclasses.replace(f, hint=list[str], about="names alone") if f.name == "env" else f for f in fields]
        elif kind == "answered":
            fields = [f for f in fields if f.name in ("instruction", "call")]
        found.append(Shape(cls.__name__, (*place, *fields), False, shape.about))
    return found


def kind_of(entry: Shape) -> str:
    return next(kind for kind, cls in events.KINDS.items() if cls.__name__ == entry.name)


def mistakes() -> Iterator[Mistake]:
    def below(cls: type[errors.EverforgeError], parent: str | None) -> Iterator[Mistake]:
        yield Mistake(cls.__name__, parent, cls.code, cls.http_status, cls.retry, inspect.cleandoc(cls.__dict__.get("__doc__") or ""))
        for sub in cls.__subclasses__():
            if sub.__module__ == errors.__name__:
                yield from below(sub, cls.__name__)

    yield from below(errors.EverforgeError, None)


def _shape(cls: type) -> Shape:
    hints = get_type_hints(cls)
    notes = _comments(cls)
    fields = tuple(
        Field(f.name, hints[f.name], f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING, notes.get(f.name, ""))
        for f in dataclasses.fields(cls)
        if f.init
    )
    about = inspect.cleandoc(cls.__dict__.get("__doc__") or "")
    return Shape(cls.__name__, fields, issubclass(cls, api.Request), "" if about.startswith(f"{cls.__name__}(") else about)


_COMMENTED = re.compile(r"^    (\w+): [^#\n]*#\s*(.+)$", re.MULTILINE)


def _comments(cls: type) -> dict[str, str]:
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__[:-1]):
        if dataclasses.is_dataclass(base) and base.__module__.startswith("everforge"):
            found |= dict(_COMMENTED.findall(inspect.getsource(base)))
    return {name: text.replace("noqa", "").strip() for name, text in found.items()}
