"""A machine's pack, `ROOT/.pack-<machine>/`: the pages of its kept points, each once.

    pages           slots of one page each
    digests         what lies in each slot, to find a page by its content; only a hint, since a page that is found is compared byte by byte
    base-<hash>     a hard link to the memory image of the template, whose pages need not be kept again; so it stays whatever becomes of the template
    <snapshot id>   the index of a packed snapshot

What is in use is what the indexes name; nothing else is written down, so nothing can disagree with them. Only the holder of the pack's lock changes
slots, and only slots that no index names.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import re
import time
from array import array
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from everforge.store.disk import Disk
from everforge.wire.errors import SnapshotDamaged
from everforge.wire.ids import SNAPSHOT_ID, SnapshotId

from . import index as packindex
from .comparison import DIGEST_BYTES, LOOKUP_PAGES_MAX, Base, WrittenOnce, digest_of
from .index import BASE, PACK, PAGE_BYTES, ZERO, Index

PREFIX = ".pack-"
PAGES, DIGESTS, BASE_PREFIX, NEW = "pages", "digests", "base-", ".new-"
FREE = bytes(DIGEST_BYTES)  # as the digest of a slot: empty, and its space given back
LOCK_SECONDS = 30.0  # for the end of a packer whose server was killed; nobody waits for one that is at work
LOCK_PAUSE_SECONDS = 0.02
ZEROS = bytes(PAGE_BYTES)
BLOCK_BYTES = 512  # what stat(2) counts in, whatever the file system does
CANNOT_LINK = frozenset({errno.EMLINK, errno.EPERM, errno.EOPNOTSUPP, errno.EXDEV, errno.ENOENT})
_MACHINE = re.compile(r"[a-z0-9]{1,64}")


def folder_of(root: Path, machine: str | None) -> Path | None:
    """None where there cannot be one: a template has no machine."""
    return root / f"{PREFIX}{machine}" if machine is not None and _MACHINE.fullmatch(machine) else None


def indexes(folder: Path) -> list[SnapshotId]:
    try:
        return [SnapshotId(path.name) for path in sorted(folder.iterdir()) if SNAPSHOT_ID.fullmatch(path.name)]
    except FileNotFoundError:
        return []


def bytes_used(folder: Path) -> int:
    """Of the disk, without the base: that one is there anyway."""
    used = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.startswith(BASE_PREFIX):
                with suppress(FileNotFoundError):  # renamed by the packer meanwhile
                    used += entry.stat(follow_symlinks=False).st_blocks * BLOCK_BYTES
    return used


@contextmanager
def locked(folder: Path, patience_seconds: float = LOCK_SECONDS) -> Generator[None]:
    """Raises FileNotFoundError when there is no such pack, BlockingIOError when another has it for too long."""
    deadline = time.monotonic() + patience_seconds
    while True:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _lock(descriptor, deadline)
            if os.path.samestat(os.fstat(descriptor), folder.stat(follow_symlinks=False)):
                yield
                return
        finally:
            os.close(descriptor)


def _lock(descriptor: int, deadline: float) -> None:
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(LOCK_PAUSE_SECONDS)


class Pack:
    """Open for changes; its lock must be held."""

    def __init__(self, folder: Path, disk: Disk) -> None:
        self._folder = folder
        self._disk = disk
        self.base: Base | None = None
        self._pages = disk.open_file(folder / PAGES, write=True)
        self._digests = self._read_digests()
        self._bases: set[str | None] = set()
        self._used, self._intact = self._find_used()
        self._slots = self._by_content()
        self._next = 0 if self._intact else len(self._used)

    def __enter__(self) -> Pack:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._pages)
        if self.base is not None:
            self.base.close()

    # --- pages in ------------------------------------------------------------------------------------------------------------------------

    def use_base(self, file: Path, digest: str) -> None:
        """A file whose pages count as kept. Where it cannot have one more name, the pack does without."""
        link = self._folder / f"{BASE_PREFIX}{digest}"
        try:
            self._disk.link(file, link)
        except FileExistsError:
            pass  # linked for an earlier snapshot
        except OSError as e:
            if e.errno not in CANNOT_LINK:
                raise
            return
        self.base = Base(link, self._disk)

    def place(self, page: bytes) -> tuple[int, int]:
        """Where this page lies, put there now if it does not lie anywhere yet."""
        if page == ZEROS:
            return ZERO, 0
        digest = digest_of(page)
        if self.base is not None and (number := self.base.find(digest, page)) is not None:
            return BASE, number
        slot = self._slots.get(digest)
        if slot is not None and self._disk.read_at(self._pages, PAGE_BYTES, slot * PAGE_BYTES) == page:
            return PACK, slot
        slot = self._take_slot(digest)
        self._disk.write_at(self._pages, page, slot * PAGE_BYTES)
        self._slots[digest] = slot
        return PACK, slot

    def _take_slot(self, digest: bytes) -> int:
        slot = self._used.find(0, self._next)
        if slot < 0:
            slot = len(self._used)
            self._used.append(1)
        self._used[slot] = 1
        self._next = slot + 1
        at = slot * DIGEST_BYTES
        self._digests.extend(bytes(max(0, at + DIGEST_BYTES - len(self._digests))))
        self._digests[at : at + DIGEST_BYTES] = digest
        return slot

    def add(self, index: Index) -> None:
        """Durable when it returns: first the pages, then the index, then their names."""
        self._write_digests()
        self._disk.sync(self._folder / PAGES)
        new = self._folder / f"{NEW}{index.snapshot}"
        self._disk.remove_file(new)
        self._disk.write_file(new, packindex.encode(index))
        self._disk.replace(new, self._folder / index.snapshot)
        self._disk.sync(self._folder)
        self._disk.sync(self._folder.parent)

    # --- pages out -----------------------------------------------------------------------------------------------------------------------

    def collect(self) -> None:
        """Give back what no index names; the whole pack when there is none."""
        if not indexes(self._folder):
            self._disk.remove_tree(self._folder)
            return
        self._used, self._intact = self._find_used()
        if not self._intact:
            return  # we do not know what the index names that we cannot read
        for path in list(self._folder.iterdir()):
            if path.name.startswith(NEW) or (path.name.startswith(BASE_PREFIX) and path.name not in self._bases):
                self._disk.remove_file(path)
        self._free_slots()

    def _free_slots(self) -> None:
        end = self._used.rfind(1) + 1
        self._disk.truncate(self._pages, end * PAGE_BYTES)
        del self._used[end:], self._digests[end * DIGEST_BYTES :]
        slot = self._used.find(0)
        while slot >= 0:
            after = self._used.find(1, slot)
            place = slice(slot * DIGEST_BYTES, after * DIGEST_BYTES)
            if any(self._digests[place]):
                self._disk.punch(self._pages, slot * PAGE_BYTES, (after - slot) * PAGE_BYTES)
                self._digests[place] = FREE * (after - slot)
            slot = self._used.find(0, after)
        self._write_digests()

    # --- what is there -------------------------------------------------------------------------------------------------------------------

    def _find_used(self) -> tuple[bytearray, bool]:
        """A byte for each slot; and whether every index could be read, since otherwise a slot that seems free may not be."""
        self._bases.clear()
        used, intact = bytearray(os.fstat(self._pages).st_size // PAGE_BYTES), True
        for id in indexes(self._folder):
            try:
                base, taken = _summary(self._folder / id, WrittenOnce.at(self._folder / id))
            except FileNotFoundError:
                continue  # its snapshot was deleted just now
            except (OSError, SnapshotDamaged):
                intact = False
                continue
            self._bases.add(base)
            for first, count in zip(taken[0::2], taken[1::2], strict=True):
                used.extend(bytes(max(0, first + count - len(used))))
                used[first : first + count] = b"\1" * count
        return used, intact

    def _by_content(self) -> dict[bytes, int]:
        known = min(len(self._used), len(self._digests) // DIGEST_BYTES, LOOKUP_PAGES_MAX)
        digests = bytes(self._digests)
        return {digests[i * DIGEST_BYTES : (i + 1) * DIGEST_BYTES]: i for i in range(known) if self._used[i]}

    def _read_digests(self) -> bytearray:
        size_max = (os.fstat(self._pages).st_size // PAGE_BYTES) * DIGEST_BYTES
        try:
            return bytearray(self._disk.read_file(self._folder / DIGESTS, size_max))
        except OSError:
            return bytearray()

    def _write_digests(self) -> None:
        descriptor = self._disk.open_file(self._folder / DIGESTS, write=True)
        try:
            self._disk.write_at(descriptor, bytes(self._digests), 0)
            self._disk.truncate(descriptor, len(self._digests))
        finally:
            os.close(descriptor)


@functools.lru_cache(maxsize=256)
def _summary(path: Path, _written: WrittenOnce) -> tuple[str | None, array[int]]:
    """An index's base, and the slots that it names: flat pairs of (first, how many)."""
    found = read_index(path.parent, SnapshotId(path.name), Disk())
    taken = array("I")
    for _, runs in found.files.values():
        for source, first, count in runs:
            if source == PACK:
                taken.extend((first, count))
    return found.base, taken


def read_index(folder: Path, snapshot: SnapshotId, disk: Disk) -> Index:
    """Raises OSError, SnapshotDamaged."""
    return packindex.decode(disk.read_file(folder / snapshot, packindex.INDEX_BYTES_MAX), snapshot)
