"""Hears every signal: counts it for /metrics, tells webhooks of it, and of what comes in bursts once."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from everforge.accounts.rates import customer
from everforge.signals import Signal
from everforge.webhooks.service import Event, Webhooks
from everforge.webhooks.settings import WebhookSettings
from everforge.windows import Windows
from everforge.wire.ids import OWNER, AccountId

from .metrics import Metrics

KEY_LENGTH_MAX = 100  # characters of each part: names of our own are shorter
KEYS_MAX = 10_000  # addresses, tokens, machines whose bursts are counted; beyond it the oldest is forgotten
BLOCKED = "refused"  # the verdict on an attempt to leave a machine


class Bursts:
    """So many of one kind within a time: told once, and again when they go on after it."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows = Windows[tuple[str, ...]](seconds, KEYS_MAX)

    def count(self, key: tuple[str, ...], burst: int) -> bool:
        """True for the one that makes it a burst."""
        window = self._windows.at(tuple(part[:KEY_LENGTH_MAX] for part in key), self._clock())
        window.count += 1
        return window.count == burst


class Lookout:
    def __init__(self, webhooks: Webhooks, metrics: Metrics, settings: WebhookSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._webhooks = webhooks
        self._metrics = metrics
        self._settings = settings
        self._bursts = Bursts(settings.burst_seconds, clock)

    def hear(self, signal: Signal) -> Awaitable[None] | None:
        self._hear(signal)
        return self._webhooks.late

    def _hear(self, signal: Signal) -> None:
        if signal.kind == "limit.hit":
            self._limit_hit(signal)
        elif signal.kind == "auth.failure":
            self._auth_failed(signal)
        elif signal.kind == "egress.attempt":
            self._left(signal)
        else:
            if signal.kind.startswith("machine."):
                self._metrics.machine_event(signal.kind)
            self._tell(signal.kind, signal, owner_too=False)

    def _limit_hit(self, signal: Signal) -> None:
        limit = str(signal.detail.get("limit"))
        self._metrics.limit_hit(limit)
        if self._bursts.count(("limit", signal.account or "", signal.machine or "", limit), 1):
            self._tell("limit.hit", signal)

    def _auth_failed(self, signal: Signal) -> None:
        self._metrics.auth_failed(str(signal.detail.get("reason")))
        for what, who in (("address", customer(str(signal.detail.get("address")))), ("token", signal.detail.get("token"))):
            if who and self._bursts.count(("auth", what, str(who)), self._settings.auth_failures_burst):
                detail = {what: who, "failures": self._settings.auth_failures_burst, "seconds": self._settings.burst_seconds}
                self._tell("auth.failures", Signal("auth.failures", signal.account, None, detail))

    def _left(self, signal: Signal) -> None:
        verdict = str(signal.detail.get("verdict"))
        self._metrics.egress(verdict)
        burst = self._settings.egress_blocked_burst
        if verdict == BLOCKED and self._bursts.count(("egress", signal.account or "", signal.machine or ""), burst):
            detail = {**signal.detail, "attempts": burst, "seconds": self._settings.burst_seconds}
            self._tell("egress.blocked_burst", Signal(signal.kind, signal.account, signal.machine, detail))

    def _tell(self, kind: str, signal: Signal, *, owner_too: bool = True) -> None:
        """What may be an attack is told to the owner of the server, too, whosever it is."""
        account = None if signal.account is None else AccountId(signal.account)
        hearers = {OWNER} if account is None else {account, OWNER} if owner_too else {account}
        self._webhooks.tell(Event(kind, tuple(hearers), account, signal.machine, time.time(), signal.detail))
