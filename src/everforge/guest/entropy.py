"""Fresh randomness for a copy of a machine: forks and new machines must not draw the same numbers. Hash seeds cannot change in a living process."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from typing import Any

Derive = Callable[[str], bytes]


def reseed(entropy: bytes) -> list[str]:
    """Every generator that is shared by the whole process and already loaded; one loaded later seeds itself from the operating system.

    Gives the names of modules that could not be seeded: the user may have put anything in their place.
    """

    def derived(purpose: str) -> bytes:
        return hashlib.blake2b(entropy, digest_size=32, person=purpose.encode()).digest()

    failed: list[str] = []
    for name, seed in _SEEDS.items():
        module: Any = sys.modules.get(name)  # by name, so that nothing is imported for it
        if module is not None:
            try:
                seed(module, derived)
            except Exception:
                failed.append(name)
    return failed


def _seed_random(random: Any, derived: Derive) -> None:
    random.seed(derived("random"))


def _seed_numpy(numpy_random: Any, derived: Derive) -> None:
    words = derived("numpy")
    numpy_random.seed([int.from_bytes(words[i : i + 4], "little") for i in range(0, 32, 4)])


def _seed_tempfile(tempfile: Any, derived: Derive) -> None:
    tempfile._name_sequence = None


def _seed_ssl(ssl: Any, derived: Derive) -> None:
    ssl.RAND_add(derived("ssl"), 32.0)


def _seed_uuid(uuid: Any, derived: Derive) -> None:
    # The C library keeps the clock sequence of uuid1 in memory that was copied; Python's own way draws it from `random`.
    uuid._generate_time_safe = None
    uuid._last_timestamp = None
    uuid._node = int.from_bytes(derived("uuid")[:6], "big") | (1 << 40)  # the multicast bit: not a card's address


def _seed_sqlite(sqlite: Any, derived: Derive) -> None:
    """That of `random()` and `randomblob()`, which all its connections share: it draws a new seed from the operating system."""
    import ctypes

    ctypes.CDLL(sqlite.__file__).sqlite3_randomness(0, None)  # in that file, or in a library that it was linked with


_SEEDS: dict[str, Callable[[Any, Derive], None]] = {
    "random": _seed_random,
    "numpy.random": _seed_numpy,
    "tempfile": _seed_tempfile,
    "_ssl": _seed_ssl,
    "uuid": _seed_uuid,
    "_sqlite3": _seed_sqlite,
}
