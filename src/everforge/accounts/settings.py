"""Every number and choice that accounts/ decides by, with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from everforge.wire.errors import InvalidInput

Signup = Literal["closed", "invitation", "open"]


RATE_MIN = 0.001  # requests per second: one in a quarter of an hour, and less would say never


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSettings:
    signup: Signup = "invitation"  # who may make an account: nobody but the owner, those whom the owner invited, anybody
    signups_per_hour: int = 10  # tries from one address; IPv6 by /64, which is what one customer gets
    signups_per_hour_max: int = 200  # accounts made, from all addresses together
    invitation_seconds: float = 7 * 24 * 3600.0
    invitations_max: int = 1_000  # open at once
    # --- what an account may have, unless the owner of the server set something else for it; 0: no limit. The owner's own account has none
    account_machines_max: int = 0
    account_awake_max: int = 0  # machines at once
    account_memory_mb_max: int = 0  # limits of its awake machines, added up
    account_disk_mb_max: int = 0  # its snapshots
    account_requests_per_second: float = 0.0
    account_egress_bytes_per_day: int = 0
    stranger_requests_per_second: float = 50.0  # from one address (IPv6: one /64) without a token that is known; 0: no limit
    request_burst_seconds: float = 2.0  # what comes in that time may come at once

    tokens_max: int = 100  # per account, neither revoked nor expired; of those that are, as many are kept
    cached_tokens_max: int = 10_000  # some 500 bytes each, and up to 10 KB with tags

    smtp_url: str = ""  # smtp://user:password@host:587 or smtps://…; if empty, a sign-up answers with the token itself
    mail_from: str = ""
    mail_seconds: float = 20.0


def check(settings: AccountSettings) -> None:
    """Raises InvalidInput."""
    s = settings
    for holds, rule in (
        (s.signup in get_args(Signup), f"signup is one of {', '.join(get_args(Signup))}"),
        (min(s.signups_per_hour, s.signups_per_hour_max, s.invitations_max, s.tokens_max, s.cached_tokens_max) > 0, "limits are above 0"),
        (s.invitation_seconds > 0 and s.mail_seconds > 0, "invitation_seconds and mail_seconds are above 0"),
        (
            min(
                s.account_machines_max,
                s.account_awake_max,
                s.account_memory_mb_max,
                s.account_disk_mb_max,
                s.account_requests_per_second,
                s.account_egress_bytes_per_day,
                s.stranger_requests_per_second,
            )
            >= 0,
            "quotas are not below 0",
        ),
        (
            all(rate == 0 or rate >= RATE_MIN for rate in (s.account_requests_per_second, s.stranger_requests_per_second)),
            f"requests per second are at least {RATE_MIN:g}, or 0",
        ),
        (s.request_burst_seconds > 0, "request_burst_seconds is above 0"),
        (bool(s.smtp_url) == bool(s.mail_from), "smtp_url and mail_from are given both, or neither"),
    ):
        if not holds:
            raise InvalidInput(f"the settings of accounts do not fit together: {rule}")
