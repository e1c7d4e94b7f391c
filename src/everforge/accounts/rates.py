"""How often an address may try something that costs us more than it costs them."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable

from everforge.windows import Windows
from everforge.wire.errors import TooMany

ADDRESSES_MAX = 10_000  # remembered; beyond it the oldest is forgotten


class Rates:
    """So many in a window of time, which begins with the first."""

    def __init__(self, limit: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._windows = Windows[str](seconds, ADDRESSES_MAX)

    def count(self, address: str) -> None:
        """One more. Raises TooMany when there were enough."""
        now = self._clock()
        window = self._windows.at(customer(address), now)
        if window.count >= self._limit:
            wait = int(window.began + self._windows.seconds - now) + 1
            raise TooMany(f"that was too often: try again in {wait} seconds", retry_after_seconds=wait)
        window.count += 1

    def __len__(self) -> int:
        return len(self._windows)


def customer(address: str) -> str:
    """Whose it is: one customer has many IPv6 addresses, and could take another one each time."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))
    return str(parsed)
