"""Fresh randomness for a copy of a machine: forks and new machines must not draw the same numbers. Hash seeds cannot change in a living process."""

from __future__ import annotations

import hashlib
import sys
from typing import Any


def reseed(entropy: bytes) -> None:
    """Every generator that is shared by the whole process and already loaded; one loaded later seeds itself from the operating system."""

    def derived(purpose: str) -> bytes:
        return hashlib.blake2b(entropy, digest_size=32, person=purpose.encode()).digest()

    modules: dict[str, Any] = sys.modules  # read by name, so that nothing is imported for it
    if random := modules.get("random"):
        random.seed(derived("random"))
    if numpy_random := modules.get("numpy.random"):
        words = derived("numpy")
        numpy_random.seed([int.from_bytes(words[i : i + 4], "little") for i in range(0, 32, 4)])
    if tempfile := modules.get("tempfile"):
        tempfile._name_sequence = None
    if ssl := modules.get("_ssl"):
        ssl.RAND_add(derived("ssl"), 32.0)
    if uuid := modules.get("uuid"):
        # The C library keeps the clock sequence of uuid1 in memory that was copied; Python's own way draws it from `random`.
        uuid._generate_time_safe = None
        uuid._last_timestamp = None
        uuid._node = int.from_bytes(derived("uuid")[:6], "big") | (1 << 40)  # the multicast bit: not a card's address
