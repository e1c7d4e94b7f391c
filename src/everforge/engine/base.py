"""The seam between machines and whatever isolates them: three small Protocols and the data they exchange.

Every implementation passes tests/conformance/engine_suite.py.
"""

from __future__ import annotations

import enum
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from everforge.wire.ids import SandboxId


@dataclass(frozen=True, slots=True)
class Image:
    """A read-only root file system, named by the digest of its content."""

    digest: str
    root: Path


@dataclass(frozen=True, slots=True)
class Limits:
    """What a sandbox as a whole may take. Limits of single processes inside it are the guest agent's business."""

    memory_mb: int = 1024
    cpus: float = 2.0
    processes: int = 256
    disk_mb: int = 5120  # fixed when a template is made: a restore keeps the size that was saved


class How(enum.StrEnum):
    """How a sandbox came to its end."""

    EXITED = "exited"  # the guest ended by itself
    KILLED = "killed"  # by a signal from outside the guest
    OUT_OF_MEMORY = "out_of_memory"  # over its memory limit
    DESTROYED = "destroyed"  # by `destroy`
    LOST = "lost"  # the engine no longer knows it: the host or the warden died


@dataclass(frozen=True, slots=True)
class Ending:
    how: How
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """What a live try (start, save, restore, destroy) showed."""

    engine: str
    fit: bool
    build: str  # fingerprint of the engine build; a snapshot is valid only for its own
    summary: str  # one sentence for people
    facts: Mapping[str, str]  # what `doctor` prints: cgroup version, rootless or not, how limits are enforced
    remedy: str = ""  # what to do when it is not fit


class Link(Protocol):
    """Bytes to and from a guest. One reader, one writer."""

    async def receive(self) -> bytes:
        """The next bytes; b"" when the guest's side is closed."""
        ...

    async def send(self, record: bytes) -> None:
        """One record, written atomically or not at all. Raises SandboxLost when the guest's side is closed."""
        ...

    def close(self) -> None:
        """Let go of it; the sandbox goes on, and another link may be opened on it."""
        ...


class Sandbox(Protocol):
    @property
    def id(self) -> SandboxId: ...

    @property
    def build(self) -> str:
        """The engine build that runs it, and to which what `save` writes will belong."""
        ...

    @property
    def link(self) -> Link: ...

    def egress(self) -> socket.socket | None:
        """The socket of its egress door, a copy that is the caller's to close. None: there is no way out."""
        ...

    async def save(self, folder: Path) -> None:
        """Write everything into `folder` (empty, existing) and leave it running; raises SaveFailed or DiskFull and leaves it running."""
        ...

    async def destroy(self) -> None:
        """End it and remove every trace of it on the host. Twice is fine."""
        ...

    async def ended(self) -> Ending:
        """Returns when the sandbox is no more; any number of callers."""
        ...

    async def memory_bytes(self) -> int:
        """What it takes of the host's memory now."""
        ...


class Engine(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def build(self) -> str:
        """Of new sandboxes. Fingerprint of everything a snapshot depends on besides its image: engine binary, flags, processor features."""
        ...

    async def knows(self, build: str) -> bool:
        """Whether what this build saved can be restored here: the present one, or an earlier one that is still at hand."""
        ...

    async def probe(self, image: Image) -> Probe: ...

    async def start(self, image: Image, limits: Limits) -> Sandbox:
        """Boot a fresh sandbox from an image."""
        ...

    async def restore(self, image: Image, folder: Path, limits: Limits, build: str | None = None) -> Sandbox:
        """A sandbox that goes on from what `save` wrote under this build (the present one). The folder is not changed and may be restored many times
        at once."""
        ...

    async def survivors(self) -> Mapping[SandboxId, Sandbox]:
        """After a restart of the server: every sandbox of this data folder that is still alive, with a fresh link."""
        ...

    async def close(self) -> None:
        """Let go of everything; sandboxes that belong to machines stay alive, those waiting in pools do not."""
        ...
