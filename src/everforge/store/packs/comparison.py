"""What a pack compares with: pages that lie in a file which is kept anyway, found by place and by content."""

from __future__ import annotations

import functools
import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from everforge.store.disk import Disk

from .index import PAGE_BYTES

DIGEST_BYTES = 16
LOOKUP_PAGES_MAX = 2_000_000  # found by content; about 300 MB of memory. Beyond it pages are kept twice rather than looked for


@dataclass(frozen=True, slots=True)
class WrittenOnce:
    """One that does not change once it is written; the same under every name that it has."""

    path: Path = field(compare=False)
    device: int
    inode: int
    changed_ns: int
    size: int

    @classmethod
    def at(cls, path: Path) -> WrittenOnce:
        status = path.stat(follow_symlinks=False)
        return cls(path, status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)


def digest_of(page: bytes) -> bytes:
    """Cryptographic, since a guest chooses its pages: it must not be able to make us compare many that only seem alike."""
    return hashlib.blake2b(page, digest_size=DIGEST_BYTES).digest()


class Base:
    def __init__(self, path: Path, disk: Disk) -> None:
        self._disk = disk
        self._descriptor = disk.open_file(path)
        self._known = _digests_of(WrittenOnce.at(path))
        self.name = path.name

    def read(self, first_page: int, size: int) -> bytes:
        return self._disk.read_at(self._descriptor, size, first_page * PAGE_BYTES)

    def find(self, digest: bytes, page: bytes) -> int | None:
        number = self._known.get(digest)
        return number if number is not None and self.read(number, PAGE_BYTES) == page else None

    def close(self) -> None:
        os.close(self._descriptor)


@functools.lru_cache(maxsize=2)
def _digests_of(base: WrittenOnce) -> dict[bytes, int]:
    known: dict[bytes, int] = {}
    with open(base.path, "rb") as file:
        while (page := file.read(PAGE_BYTES)) and len(known) < LOOKUP_PAGES_MAX:
            known.setdefault(digest_of(page), file.tell() // PAGE_BYTES - 1)
    return known
