"""Every number and choice of the egress door, with its unit and its reason."""

from __future__ import annotations

import math
from dataclasses import dataclass

from everforge.wire.errors import InvalidInput

from .limits import EgressLimits
from .policy import WORDS, Word, make_policy
from .rules import normal_host, port_of, split_port

MB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressSettings:
    egress: Word = "packages"  # what a new machine may reach when its owner says nothing, and
    egress_allow: tuple[str, ...] = ()  # beyond that
    egress_max: Word = "public"  # the most that anybody may ask for; what machines were given before is cut down to it
    allow_hosts: tuple[str, ...] = ()  # host:port in closed networks (loopback, private, ...) that machines may be allowed to reach

    egress_bytes_per_second: int = 100 * MB  # of one machine, both directions together; 0: no limit
    egress_bytes_per_day: int = 100 * 1024 * MB  # of one machine; 0: no limit
    egress_connections_per_second: int = 50  # begun by one machine; 0: no limit
    egress_connections_burst: int = 200  # that may be begun at once, before the rate counts
    egress_idle_seconds: float = 600.0  # until a connection over which nothing moves is cut
    egress_head_seconds: float = 30.0  # for the head of a request to arrive
    egress_log_max: int = 10_000  # attempts kept of one machine


def check(settings: EgressSettings) -> None:
    """Raises InvalidInput."""
    s = settings
    make_policy(s.egress, s.egress_allow)
    if s.egress_max not in WORDS:
        raise InvalidInput(f"egress_max must be one of {', '.join(WORDS)}, not {str(s.egress_max)[:60]!r}")
    if s.egress == "none" and s.egress_allow:
        raise InvalidInput("egress is `none`, which reaches nothing, whatever egress_allow says: take `list` for what the rules allow and no more")
    for text in s.allow_hosts:
        opened_place(text)
    rates = (s.egress_bytes_per_second, s.egress_bytes_per_day, s.egress_connections_per_second)
    others = (s.egress_connections_burst, s.egress_idle_seconds, s.egress_head_seconds, s.egress_log_max)
    if not all(rate >= 0 for rate in rates) or not all(math.isfinite(other) and other > 0 for other in others):
        raise InvalidInput("the settings of egress do not fit together: rates are not below 0, and the other limits are above it")


def opened_place(text: str) -> tuple[str, int]:
    """One host and one port, named exactly. Raises InvalidInput."""
    host, port_text = split_port(text)
    name, port = normal_host(host), port_of(port_text)
    if name is None or port is None:
        raise InvalidInput(f"{text[:100]!r} opens nothing: name one host and one port, as in 127.0.0.1:9000")
    return name, port


def limits(settings: EgressSettings) -> EgressLimits:
    return EgressLimits(
        bytes_per_second=settings.egress_bytes_per_second,
        bytes_per_day=settings.egress_bytes_per_day,
        connections_per_second=settings.egress_connections_per_second,
        connections_burst=settings.egress_connections_burst,
        idle_seconds=settings.egress_idle_seconds,
        head_seconds=settings.egress_head_seconds,
    )
