"""Every number and choice that accounts/ decides by, with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from everforge.wire.errors import InvalidInput

Signup = Literal["closed", "invitation", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSettings:
    signup: Signup = "invitation"  # who may make an account: nobody but the owner, those whom the owner invited, anybody
    signups_per_hour: int = 10  # tries from one address; IPv6 by /64, which is what one customer gets
    signups_per_hour_max: int = 200  # accounts made, from all addresses together
    invitation_seconds: float = 7 * 24 * 3600.0
    invitations_max: int = 1_000  # open at once
    tokens_max: int = 100  # per account, neither revoked nor expired
    cached_tokens_max: int = 10_000  # some 500 bytes each

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
        (bool(s.smtp_url) == bool(s.mail_from), "smtp_url and mail_from are given both, or neither"),
    ):
        if not holds:
            raise InvalidInput(f"the settings of accounts do not fit together: {rule}")
