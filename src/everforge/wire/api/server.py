"""What the server says of itself, and of what went wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    status: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    code: str
    message: str
    retry: Literal["never", "later", "now"]
    id: str | None = None
    details: dict[str, Any] = field(default_factory=dict[str, Any])
