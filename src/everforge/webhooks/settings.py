"""Every number that webhooks/ decides by, with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass

from everforge.wire.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    webhooks_max: int = 20  # of one account
    webhook_hosts_open: tuple[str, ...] = ()  # host:port, exactly: in a private network, or without TLS, and opened by the owner of the server
    webhook_seconds: float = 10.0  # for one try, from the name to the answer
    webhook_tries: int = 8
    webhook_pause_seconds: float = 5.0  # before the second try; four times as long before each of those that follow, and
    webhook_pause_seconds_max: float = 6 * 3600.0  # never longer, for those who set more tries: the last of eight comes 7.6 hours after the first
    webhook_queue_max: int = 1_000  # events that wait for one webhook; more are counted and let go
    webhook_dead_max: int = 1_000  # of one account: what was tried often enough; the oldest go first
    burst_seconds: float = 60.0  # in which what comes in bursts is counted, and told once
    auth_failures_burst: int = 20  # refusals of one address, or of one token
    egress_blocked_burst: int = 20  # blocked tries of one machine


def check(settings: WebhookSettings) -> None:
    """Raises InvalidInput."""
    s = settings
    for holds, rule in (
        (min(s.webhooks_max, s.webhook_tries, s.webhook_queue_max, s.webhook_dead_max) > 0, "limits are above 0"),
        (min(s.auth_failures_burst, s.egress_blocked_burst) > 0 and s.burst_seconds > 0, "a burst has a number and a time above 0"),
        (0 < s.webhook_pause_seconds <= s.webhook_pause_seconds_max and s.webhook_seconds > 0, "pauses and webhook_seconds are above 0"),
        (all(":" in place for place in s.webhook_hosts_open), "webhook_hosts_open are like hooks.example.org:8443"),
    ):
        if not holds:
            raise InvalidInput(f"the settings of webhooks do not fit together: {rule}")
