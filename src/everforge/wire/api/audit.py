"""The audit log."""

from __future__ import annotations

from dataclasses import dataclass

from ..audit import AuditEntry, AuditHead


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    entries: list[AuditEntry]  # oldest first
    next: int | None  # to be given as `after` for those that follow
    head: AuditHead | None = None  # where the whole log ends; for the owner, who alone sees all of it
