"""Every number that audit/ decides by, with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass

from everforge.wire.errors import InvalidInput

MB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    audit_age_days: float = 365.0  # older entries are let go; 0: never
    audit_bytes_max: int = 256 * MB  # some 500,000 entries; the oldest go first
    # One account alone takes at least about so long to fill these bytes: what it does beyond its part of a day is counted, not written one by one.
    # So many accounts that do that together, so many times faster.
    audit_account_days: float = 30.0
    audit_flush_seconds: float = 0.25  # entries of instructions and files are written so much later, together: a killed server loses no more
    audit_queue_max: int = 10_000  # entries that wait to be written; beyond it they are counted, and the count is an entry
    audit_wait_seconds: float = 1.0  # how long a call waits for room in the queue, or for its entry to be written, before it goes on without
    audit_refusals_per_minute: int = 20  # entries of refusals from one address without a good token; more are counted, and an entry has the count
    audit_account_refusals_per_minute: int = 100  # the same for each kind of refusal of one account: nobody needs more to know what went on


def check(settings: AuditSettings) -> None:
    """Raises InvalidInput."""
    s = settings
    for holds, rule in (
        (s.audit_age_days >= 0, "audit_age_days is not below 0"),
        (s.audit_bytes_max >= MB, "audit_bytes_max is at least 1 MB"),
        (s.audit_account_days > 0, "audit_account_days is above 0"),
        (s.audit_flush_seconds > 0 and s.audit_wait_seconds > 0, "audit_flush_seconds and audit_wait_seconds are above 0"),
        (s.audit_queue_max > 0, "audit_queue_max is above 0"),
        (
            s.audit_refusals_per_minute > 0 and s.audit_account_refusals_per_minute > 0,
            "audit_refusals_per_minute and audit_account_refusals_per_minute are above 0",
        ),
    ):
        if not holds:
            raise InvalidInput(f"the settings of the audit log do not fit together: {rule}")
