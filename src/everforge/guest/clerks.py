"""The agent's side of file transfers: one short-lived process of the user's for each errand, and the passing on of what is asked and told.

The agent looks at no file itself. A clerk can do what the user can, stops when everything of the user's stops, and goes on where it was after a wake.
"""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Callable, Iterable, Sized
from typing import Protocol

from ..wire.errors import MachineFailed, QueueFull, TransferCut
from ..wire.files import PIECE_BYTES, Ask, Told, pack_json
from ..wire.messages import FILE_HEAD, FileTold
from .desk import PACKET

CLERKS_MAX = 16  # the keeper asks for less
READ_BYTES = 128 * 1024
SEND_BYTES = 64 * 1024  # about what a socket takes at once
BEHIND_RECORDS_MAX = 32  # unwritten on the link: above it clerks wait


class Way(Protocol):
    """To the keeper."""

    @property
    def unwritten(self) -> Sized: ...

    def send_control(self, kind: int, body: bytes, /) -> None: ...


Start = Callable[[socket.socket], None]


class _Clerk:
    def __init__(self, errand: int, start: Start) -> None:
        self.errand = errand
        self.ended = False  # its last word was passed on
        self.unsent = bytearray()
        self._heard = bytearray()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            start(theirs)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        self.connection = ours

    def write(self) -> None:
        """As much as it takes now."""
        with contextlib.suppress(BlockingIOError):
            while self.unsent:
                with memoryview(self.unsent) as view:
                    sent = self.connection.send(view[:SEND_BYTES])
                del self.unsent[:sent]

    def read(self) -> list[tuple[int, int, bytes]] | None:
        """What it has told, whole; None when there will be no more. Raises ValueError for what no clerk of ours says."""
        try:
            data = self.connection.recv(READ_BYTES)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            return None
        self._heard += data
        told: list[tuple[int, int, bytes]] = []
        start = 0
        while len(self._heard) - start >= PACKET.size:
            length, verb, number = PACKET.unpack_from(self._heard, start)
            if length > PIECE_BYTES:
                raise ValueError("a clerk tells more at once than it may")
            end = start + PACKET.size + length
            if len(self._heard) < end:
                break
            told.append((verb, number, bytes(self._heard[start + PACKET.size : end])))
            start = end
        del self._heard[:start]
        return told


class Clerks:
    """`start` begins a process, or whatever serves at the other end of a connection."""

    def __init__(self, link: Way, start: Start) -> None:
        self._link = link
        self._start = start
        self._clerks: dict[int, _Clerk] = {}

    # --- what is asked -------------------------------------------------------------------------------------------------------------------

    def take(self, ask: bytes) -> None:
        """A FileAsk as it came."""
        errand, verb, number = FILE_HEAD.unpack_from(ask)
        found = self._clerks.get(errand)
        if verb == Ask.DROP:
            self._drop(errand)
            return
        if found is None and verb == Ask.OPEN:
            found = self._open(errand)
        elif found is None:
            self._fail(errand, TransferCut("the machine knows nothing of this transfer any more: what did it is gone"))
        if found is not None:
            found.unsent += PACKET.pack(len(ask) - FILE_HEAD.size, verb, number)
            found.unsent += memoryview(ask)[FILE_HEAD.size :]

    def _open(self, errand: int) -> _Clerk | None:
        if len(self._clerks) >= CLERKS_MAX:
            self._fail(errand, QueueFull(f"{CLERKS_MAX} transfers are under way in this machine already"))
            return None
        try:
            found = self._clerks[errand] = _Clerk(errand, self._start)
        except OSError as e:
            self._fail(errand, MachineFailed(f"no process could be started for the transfer: {e}"))
            return None
        return found

    def drop_all(self) -> None:
        """Whoever asked is no more, or this is another machine now."""
        for errand in list(self._clerks):
            self._drop(errand)

    def _drop(self, errand: int) -> None:
        """It sees that nobody listens any more, cleans up and ends."""
        found = self._clerks.pop(errand, None)
        if found is not None:
            found.connection.close()

    # --- the loop ------------------------------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        return bool(self._clerks)

    @property
    def state(self) -> tuple[object, ...]:
        """What `wanted` depends on."""
        if not self._clerks:
            return ()
        return (self._may_tell, *((c.errand, bool(c.unsent)) for c in self._clerks.values()))

    @property
    def _may_tell(self) -> bool:
        return len(self._link.unwritten) < BEHIND_RECORDS_MAX

    def wanted(self) -> Iterable[tuple[int, int]]:
        reading = select.POLLIN if self._may_tell else 0
        for found in self._clerks.values():
            yield found.connection.fileno(), reading | (select.POLLOUT if found.unsent else 0)

    def serve(self, ready: list[int]) -> None:
        for found in list(self._clerks.values()):
            if found.unsent:
                try:
                    found.write()
                except OSError:  # it has ended: what it told last is still to be read
                    found.unsent.clear()
            if found.connection.fileno() in ready and self._may_tell:
                self._hear(found)

    def _hear(self, found: _Clerk) -> None:
        try:
            told = found.read()
        except ValueError:
            told = None
        for verb, number, body in told or ():
            found.ended = found.ended or verb in (Told.END, Told.FAILED)
            self._tell(found.errand, verb, number, body)
        if told is None:
            self._drop(found.errand)
            if not found.ended:
                self._fail(found.errand, TransferCut("the process that did this transfer in the machine ended before it was done"))

    def _fail(self, errand: int, error: MachineFailed | TransferCut | QueueFull) -> None:
        self._tell(errand, Told.FAILED, 0, pack_json({"code": error.code, "message": error.message}))

    def _tell(self, errand: int, verb: int, number: int, body: bytes) -> None:
        self._link.send_control(FileTold.kind, FILE_HEAD.pack(errand, verb, number) + body)
