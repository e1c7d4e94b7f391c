"""What a machine has tried to reach, and what became of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from .policy import Speech

Verdict = Literal["pending", "allowed", "refused", "failed"]
WHY_CHARACTERS_MAX = 300
PATH_CHARACTERS_MAX = 200


@dataclass(slots=True)
class Attempt:
    """Kept for the machine's owner to read. `failed`: it was allowed, and was not there, or was cut."""

    host: str
    port: int
    speech: Speech
    method: str = ""
    path: str = ""  # of plain HTTP, without what follows a question mark
    verdict: Verdict = "pending"
    why: str = ""
    by: str = ""  # what allowed it
    address: str = ""
    sent_bytes: int = 0
    received_bytes: int = 0
    secrets: tuple[str, ...] = ()  # names of those that were put in
    began_at: float = field(default_factory=time.time)
    ended_at: float | None = None
    cut: Callable[[], None] | None = None  # ends it

    @property
    def place(self) -> str:
        """As people write it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def refuse(self, why: str) -> None:
        self._end("refused", why)

    def fail(self, why: str) -> None:
        self._end("failed", why)

    def _end(self, verdict: Verdict, why: str) -> None:
        """The first reason counts: what comes behind it came of it."""
        if self.verdict in ("pending", "allowed"):
            self.verdict, self.why = verdict, why[:WHY_CHARACTERS_MAX]


class Journal(Protocol):
    """Of one machine."""

    def began(self, attempt: Attempt) -> None: ...

    def ended(self, attempt: Attempt) -> None: ...

    def met(self, limit: str) -> None:
        """A limit that kept it from going further."""
        ...
