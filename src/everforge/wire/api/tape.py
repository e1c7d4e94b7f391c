"""Tapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Tape:
    entries: list[dict[str, Any]]
    position: int  # give it as `after` to go on
    more: bool
