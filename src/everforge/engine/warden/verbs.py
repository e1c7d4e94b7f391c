"""Everything that a warden can be asked, as typed and checked data. No I/O but looking at paths."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import Any, ClassVar, get_type_hints

from everforge.wire.errors import ProtocolError
from everforge.wire.ids import SANDBOX_ID

BUSY = 75  # exit status of a warden that finds another one in its place
PROTOCOL = 1  # raised when an older warden could no longer be understood
DIGEST = re.compile(r"[0-9a-f]{64}")
PATH_LENGTH_MAX = 4096

# Sanity of what ends up in cgroup files and flags; the limits that mean something are the settings of machines.
MEMORY_MB_MAX = 16 * 1024 * 1024
DISK_MB_MAX = 64 * 1024 * 1024
PROCESSES_MAX = 1_000_000
CPUS_MAX = 4096.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    name: ClassVar[str]
    descriptors: ClassVar[int] = 0  # how many must come with it
    repeatable: ClassVar[bool] = False  # asking twice is as good as once: asked again when a warden was killed over it


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSandbox(Verb):
    id: str

    def __post_init__(self) -> None:
        _check(SANDBOX_ID.fullmatch(self.id) is not None, "id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized(OneSandbox):
    memory_mb: int
    cpus: float
    processes: int

    def __post_init__(self) -> None:
        OneSandbox.__post_init__(self)
        _check(1 <= self.memory_mb <= MEMORY_MB_MAX, "memory_mb")
        _check(0.01 <= self.cpus <= CPUS_MAX, "cpus")
        _check(1 <= self.processes <= PROCESSES_MAX, "processes")


@dataclass(frozen=True, slots=True, kw_only=True)
class New(Sized):
    """Fields of a sandbox that does not exist yet."""

    engine: str  # digest of the runsc binary
    image: str  # path of a root file system
    disk_mb: int
    pooled: bool = False  # belongs to no machine yet: destroyed when its holder lets go

    def __post_init__(self) -> None:
        Sized.__post_init__(self)
        _check(DIGEST.fullmatch(self.engine) is not None, "engine")
        _check(_is_path(self.image), "image")
        _check(1 <= self.disk_mb <= DISK_MB_MAX, "disk_mb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello(Verb):
    name = "hello"
    protocol: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Start(New):
    name = "start"


@dataclass(frozen=True, slots=True, kw_only=True)
class Create(New):
    """An empty sandbox that waits for a restore."""

    name = "create"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore(New):
    """Into a sandbox that `create` made, when there is one of this id, else into a new one."""

    name = "restore"
    folder: str

    def __post_init__(self) -> None:
        New.__post_init__(self)
        _check(_is_path(self.folder), "folder")


@dataclass(frozen=True, slots=True, kw_only=True)
class Save(OneSandbox):
    name = "save"
    folder: str
    direct: bool  # runsc can write past the page cache; whether that pays depends on the size

    def __post_init__(self) -> None:
        OneSandbox.__post_init__(self)
        _check(_is_path(self.folder), "folder")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Sized):
    """A pooled sandbox becomes a machine's, with these limits."""

    name = "claim"
    repeatable = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Destroy(OneSandbox):
    name = "destroy"
    repeatable = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptors(OneSandbox):
    name = "descriptors"
    repeatable = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(OneSandbox):
    name = "usage"
    repeatable = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt(OneSandbox):
    """A sandbox that an earlier warden started; its three descriptors come along."""

    name = "adopt"
    descriptors = 3
    engine: str
    memory_mb: int
    pooled: bool

    def __post_init__(self) -> None:
        OneSandbox.__post_init__(self)
        _check(DIGEST.fullmatch(self.engine) is not None, "engine")
        _check(1 <= self.memory_mb <= MEMORY_MB_MAX, "memory_mb")


@dataclass(frozen=True, slots=True, kw_only=True)
class List(Verb):
    """In order of ids, those after `after`, as many as fit."""

    name = "list"
    repeatable = True
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep(Verb):
    """Ends and removes every sandbox of the data folder that this warden does not hold. Asked once everything was adopted."""

    name = "sweep"
    repeatable = True


VERBS: dict[str, type[Verb]] = {v.name: v for v in (Hello, Start, Create, Restore, Save, Claim, Destroy, Descriptors, Usage, Adopt, List, Sweep)}


def encode(verb: Verb) -> dict[str, Any]:
    return {"verb": verb.name, **asdict(verb)}


def decode(message: dict[str, Any]) -> Verb:
    """The verb, or ProtocolError and nothing else."""
    rest = {key: value for key, value in message.items() if key not in ("verb", "seq")}
    cls = VERBS.get(str(message.get("verb")))
    if cls is None:
        raise ProtocolError(f"there is no verb {str(message.get('verb'))[:40]!r}")
    types = _types(cls)
    for key, value in rest.items():
        wanted = types.get(key)
        # JSON writes 2.0 and 2 alike in some languages; a bool is an int in ours.
        if type(value) is not wanted and not (wanted is float and type(value) is int):
            raise ProtocolError(f"the verb {cls.name} has no such field as {key[:40]!r} with such a value")
    try:
        return cls(**rest)
    except TypeError as e:
        raise ProtocolError(f"the verb {cls.name} lacks a field") from e


@cache
def _types(cls: type[Verb]) -> dict[str, Any]:
    """Of its fields. Once: finding them out takes longer than all the rest of a request."""
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in fields(cls)}


def _check(holds: bool, field: str) -> None:
    if not holds:
        raise ProtocolError(f"{field} is not acceptable")


def _is_path(text: str) -> bool:
    return text.startswith("/") and len(text) <= PATH_LENGTH_MAX and "\x00" not in text
