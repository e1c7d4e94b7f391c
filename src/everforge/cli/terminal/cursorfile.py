"""Where a reader of a tape remembers what it has printed, so exactly that it can be killed at any moment: a number in shared memory."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import time
from pathlib import Path

from everforge.wire.errors import InvalidInput

MAGIC = b"EFcursor"
SIZE_BYTES = 512
IDENTITY_BYTES_MAX = SIZE_BYTES - 16
LOCK_SECONDS = 15.0  # for one that was killed to finish what it had begun to write
_NUMBER = struct.Struct("<q")


class CursorFile:
    """Eight bytes of magic, the number, and which machine it belongs to. The number is twice the cursor, plus one while a line is unfinished: one
    store, so that the two cannot come apart."""

    def __init__(self, path: Path, identity: str) -> None:
        self._path = path
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        except OSError as e:
            raise InvalidInput(f"{path} cannot be written: {(e.strerror or str(e)).lower()}") from e
        try:
            self._lock()
            self._memory = self._open(identity.encode("utf-8", "replace")[:IDENTITY_BYTES_MAX])
        except BaseException:
            os.close(self._handle)
            raise

    def _lock(self) -> None:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                return fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as e:
                if time.monotonic() > deadline:
                    raise InvalidInput(f"{self._path} is in use by another process: give each one a file of its own") from e
                time.sleep(0.02)

    def _open(self, identity: bytes) -> mmap.mmap:
        new = MAGIC + _NUMBER.pack(-2) + identity.ljust(IDENTITY_BYTES_MAX, b"\0")
        try:
            found = os.pread(self._handle, SIZE_BYTES + 1, 0)
            if not found:
                os.pwrite(self._handle, new, 0)
                os.fsync(self._handle)
                found = new
            if len(found) != SIZE_BYTES or not found.startswith(MAGIC):
                raise InvalidInput(f"{self._path} is something else than a cursor file: take another name")
            if found[16:] != new[16:]:
                whose = found[16:].rstrip(b"\0").decode("utf-8", "replace")
                raise InvalidInput(f"{self._path} remembers the place in another machine ({whose}): take another file, or delete it")
            return mmap.mmap(self._handle, SIZE_BYTES)
        except OSError as e:
            raise InvalidInput(f"{self._path} cannot be used as a cursor file: {(e.strerror or str(e)).lower()}") from e

    @property
    def cursor(self) -> int | None:
        """None in a new file."""
        number = _NUMBER.unpack_from(self._memory, 8)[0]
        return None if number == -2 else number >> 1

    @property
    def open(self) -> bool:
        return bool(_NUMBER.unpack_from(self._memory, 8)[0] & 1)

    def remember(self, cursor: int, open: bool) -> None:
        _NUMBER.pack_into(self._memory, 8, cursor * 2 + open)
