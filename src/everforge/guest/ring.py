"""Text from the interpreter to the agent through shared memory: once written it is there, even when the writer dies the moment after.

A byte stream of segments, each with a header that says which stream and thread it is of. The last segment grows in place while the same thread
writes on, so that a loop of prints costs a few copies of bytes. One writer, one reader, no lock: the writer stores the bytes, then the
segment's length, then the total; the reader loads them the other way round. The reader trusts nothing that it finds here.

No system call is needed while the reader is looking by itself (`awake`); else the writer must poke it.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import time
from typing import NamedTuple

from ..wire.errors import ProtocolError

CAPACITY_BYTES = 256 * 1024
SEGMENT_BYTES_MAX = 32 * 1024
CONTROL_BYTES = 64
ALIGNED_BYTES = 256  # where segments begin: whoever changes streams with every word fills the ring with some words, and not with thousands to be told
SIZE_BYTES = CONTROL_BYTES + CAPACITY_BYTES
MAIN_THREAD = 0

_HEADER = struct.Struct("@IIQq")  # length, stream, thread, origin
assert _HEADER.size <= ALIGNED_BYTES
assert CAPACITY_BYTES % ALIGNED_BYTES == ALIGNED_BYTES % 8 == 0
_WRITTEN, _READ, _AWAKE = 0, 1, 2  # which of the control words


class Said(NamedTuple):
    stream: int
    thread: int
    origin: int
    data: bytes


def create() -> int:
    """Sealed: whoever holds it may write nonsense, but not cut it off under the agent, which has it mapped and would die of looking."""
    fd = os.memfd_create("output", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, SIZE_BYTES)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return fd


class Shared:
    """The mapped memory, also as words: a word is stored and loaded in one go (struct would clear it first)."""

    def __init__(self, fd: int) -> None:
        self._memory = mmap.mmap(fd, SIZE_BYTES)
        self._view = memoryview(self._memory)
        self._words = self._view[:CONTROL_BYTES].cast("Q")
        self._lengths = self._view.cast("I")

    def close(self) -> None:
        for view in (self._words, self._lengths, self._view):
            view.release()
        self._memory.close()


class Writer(Shared):
    """Callers hold a lock of their own.

    A signal's handler may raise, or print, after any call that is made here: so our own numbers change in straight lines without calls.
    """

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._written = 0
        self._segment: tuple[int, int, int] | None = None
        self._header_at = 0
        self._length = 0
        self._easy_bytes = 0  # may be written before the reader's place has to be looked at again
        self.crowded = True  # half full or more, when last looked at

    @property
    def position(self) -> int:
        return self._written

    @property
    def reader_awake(self) -> bool:
        """False also when the ring is filling up: then a poke does no harm."""
        return not self.crowded and self._words[_AWAKE] == 1

    def write(self, segment: tuple[int, int, int], data: bytes | memoryview) -> int:
        """Takes as much as there is room for now, and says how much; `segment` is stream, thread and origin."""
        size = len(data)
        at = self._written
        start = at % CAPACITY_BYTES + CONTROL_BYTES
        if segment != self._segment or size > self._easy_bytes or self._length + size > SEGMENT_BYTES_MAX or start + size > SIZE_BYTES:
            return self._write_carefully(segment, data)
        self._memory[start : start + size] = data
        if at != self._written:
            return 0  # a handler has printed meanwhile, over our bytes: once more
        self._publish(size)
        return size

    def _publish(self, size: int) -> None:
        self._easy_bytes -= size
        self._length += size
        self._written += size
        self._lengths[self._header_at // 4] = self._length
        self._words[_WRITTEN] = self._written

    def _write_carefully(self, segment: tuple[int, int, int], data: bytes | memoryview) -> int:
        if (segment != self._segment or self._length >= SEGMENT_BYTES_MAX) and not self._open(segment):
            return 0
        at = self._written
        room = self._room()
        count = min(len(data), room, SEGMENT_BYTES_MAX - self._length)
        self._copy(at, data[:count])
        if at != self._written or segment != self._segment:
            return 0
        self.crowded = room < CAPACITY_BYTES // 2
        self._easy_bytes = room - CAPACITY_BYTES // 2
        self._publish(count)
        return count

    def _room(self) -> int:
        return CAPACITY_BYTES - (self._written - self._words[_READ])

    def _open(self, segment: tuple[int, int, int]) -> bool:
        before = self._written
        at = before + _padding(before)
        header_at = CONTROL_BYTES + at % CAPACITY_BYTES
        if self._room() < ALIGNED_BYTES + _HEADER.size + 1:  # padding, header and a byte
            return False
        _HEADER.pack_into(self._memory, header_at, 0, *segment)
        if before != self._written:
            return False
        self._header_at = header_at
        self._written = at + _HEADER.size
        self._segment = segment
        self._length = 0
        return True

    def _copy(self, position: int, data: bytes | memoryview) -> None:
        at = position % CAPACITY_BYTES
        until_end = CAPACITY_BYTES - at
        if len(data) <= until_end:
            self._memory[CONTROL_BYTES + at : CONTROL_BYTES + at + len(data)] = data
        else:
            self._memory[CONTROL_BYTES + at : SIZE_BYTES] = data[:until_end]
            self._memory[CONTROL_BYTES : CONTROL_BYTES + len(data) - until_end] = data[until_end:]


class Reader(Shared):
    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._at = 0  # everything before it has been read
        self._segment: tuple[int, int, int] | None = None
        self._header_at = 0
        self._taken = 0  # of the segment that is being read
        self.awake = False
        self.look_again = 0.0

    def wake(self) -> None:
        """From now on we look by ourselves, and need no poke."""
        if not self.awake:
            self.awake = True
            self._words[_AWAKE] = 1
        self.look_again = time.monotonic() + 0.005

    def doze(self) -> None:
        """From now on a poke is needed; what came in between is seen by whoever looks once more."""
        self.awake = False
        self._words[_AWAKE] = 0

    @property
    def empty(self) -> bool:
        return self._words[_WRITTEN] == self._at

    def read(self, upto: int | None = None) -> list[Said]:
        """Everything written until now, or until the writer was at `upto`. Raises ProtocolError when the writer is not one of ours."""
        written = self._words[_WRITTEN]
        if not self._at <= written <= self._at + CAPACITY_BYTES:
            raise ProtocolError("the counters of the output ring do not fit")
        if written == self._at:
            return []
        if upto is not None:
            written = min(written, upto)
        said: list[Said] = []
        while self._at < written:
            if self._segment is None:
                self._enter(written)
            said += self._take(written)
        # The header of the segment that may still grow must not be written over.
        self._words[_READ] = self._at if self._segment is None else self._at - self._taken - _HEADER.size
        return said

    def _enter(self, written: int) -> None:
        self._at += _padding(self._at)
        if self._at + _HEADER.size > written:
            raise ProtocolError("a segment of the output ring ends within its header")
        self._header_at = CONTROL_BYTES + self._at % CAPACITY_BYTES
        _, stream, thread, origin = _HEADER.unpack_from(self._memory, self._header_at)
        self._segment = (stream, thread, origin)
        self._at += _HEADER.size
        self._taken = 0

    def _take(self, written: int) -> list[Said]:
        assert self._segment is not None
        length = self._lengths[self._header_at // 4]
        if not self._taken <= length <= SEGMENT_BYTES_MAX:
            raise ProtocolError("a segment of the output ring has no possible length")
        count = min(length - self._taken, written - self._at)
        said = [Said(*self._segment, self._bytes(count))] if count else []
        self._at += count
        self._taken += count
        if self._at < written:
            self._segment = None  # another one follows, so this one will not grow any more
        return said

    def _bytes(self, count: int) -> bytes:
        at = self._at % CAPACITY_BYTES
        until_end = CAPACITY_BYTES - at
        if count <= until_end:
            return self._memory[CONTROL_BYTES + at : CONTROL_BYTES + at + count]
        return self._memory[CONTROL_BYTES + at : SIZE_BYTES] + self._memory[CONTROL_BYTES : CONTROL_BYTES + count - until_end]


def _padding(position: int) -> int:
    """A header lies in one piece, and where its words can be stored in one go."""
    return -position % ALIGNED_BYTES
