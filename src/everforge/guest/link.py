"""The guest's end of the link: numbered records over two non-blocking descriptors, kept until the keeper has acknowledged them."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Generator, Iterator

from ..wire import frames
from ..wire.errors import ProtocolError
from ..wire.messages import Ack, Attach, FileAsk, GuestMessage, Hello, Run, decode_from_keeper, encode
from . import shortcuts

KEPT_WEIGHT_MAX = 4 * 1024 * 1024  # unacknowledged; above it the agent stops reading what the user writes. An interrupt's end comes behind all of it
READ_BYTES = 128 * 1024
WRITE_BYTES = 64 * 1024  # what a pipe takes, and small records are put together to


class LinkClosed(Exception):
    """The host is gone for good."""


class GuestLink:
    """`hello` is asked for the agent's part of a hello: the numbers of the link are put in here. `on_attach` is told whether an epoch begins."""

    def __init__(self, in_fd: int, out_fd: int, hello: Callable[[int, int, int], Hello], on_attach: Callable[[bool], None]) -> None:
        self.in_fd = in_fd
        self.out_fd = out_fd
        self._hello = hello
        self._on_attach = on_attach
        self._decoder = frames.Decoder(frames.RECORD_BYTES_MAX)
        self._assembler = frames.Assembler()
        self._outbox = frames.Outbox(frames.GUEST_RECORD_BYTES_MAX)
        self.on_file: Callable[[bytes], None] = lambda _: None
        self.unwritten: deque[bytes | memoryview] = deque()
        self._epoch = 0
        self._attached = False
        self._gathering = False

    @property
    def full(self) -> bool:
        return self._outbox.weight >= KEPT_WEIGHT_MAX

    def send(self, message: GuestMessage) -> None:
        self.send_encoded(message.kind, encode(message))

    def send_encoded(self, kind: int, body: bytes) -> None:
        records = self._outbox.add(kind, body)
        if self._attached:
            self.unwritten.extend(records)
            self.write()

    def send_control(self, kind: int, body: bytes) -> None:
        """Never kept: whoever attaches later does not want it."""
        if self._attached:
            self.unwritten += map(frames.encode_record, frames.split(kind, body, 0, frames.GUEST_RECORD_BYTES_MAX))
            self.write()

    @contextlib.contextmanager
    def together(self) -> Generator[None]:
        """What is sent meanwhile goes out in few writes: each of them costs as much as many small records."""
        self._gathering = True
        try:
            yield
        finally:
            self._gathering = False
            self.write()

    def write(self) -> None:
        """As much as the pipe takes now."""
        while self.unwritten and not self._gathering:
            data = self._next_unwritten()
            try:
                written = os.write(self.out_fd, data)
            except BlockingIOError:
                self.unwritten.appendleft(data)
                return
            except BrokenPipeError:
                # The reader may come back with the next restore; what is kept will be sent again after its attach.
                self.unwritten.clear()
                self._attached = False
                return
            if written < len(data):
                self.unwritten.appendleft(memoryview(data)[written:])

    def _next_unwritten(self) -> bytes | memoryview:
        first = self.unwritten.popleft()
        if not self.unwritten or len(first) + len(self.unwritten[0]) > WRITE_BYTES:
            return first
        parts, size = [first], len(first)
        while self.unwritten and size + len(self.unwritten[0]) <= WRITE_BYTES:
            parts.append(self.unwritten.popleft())
            size += len(parts[-1])
        return b"".join(parts)

    def read(self) -> Iterator[GuestMessage]:
        """What the keeper says, without attach and ack, which end here. Raises LinkClosed, or ProtocolError when the place is lost."""
        try:
            data = os.read(self.in_fd, READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise LinkClosed
        for record in self._decoder.feed(data):
            if record.kind == Ack.kind and record.number == 0 and (upto := shortcuts.acknowledged(record.payload)) is not None:
                self._acknowledge(upto)
                continue
            if record.kind == FileAsk.kind and record.number == 0:
                self.on_file(record.payload)  # there are thousands of them
                continue
            message = self._assembler.add(record)
            if message is None:
                continue
            spoken = shortcuts.run(message.body) if message.kind == Run.kind else None
            spoken = spoken or decode_from_keeper(message.kind, message.body)
            if isinstance(spoken, Attach):
                self._attach(spoken)
            elif isinstance(spoken, Ack):
                self._acknowledge(spoken.upto)
            elif spoken is not None:
                yield spoken  # obeyed before anything behind it is looked at: a hello must know of it

    def _acknowledge(self, upto: int) -> None:
        self._outbox.acknowledge(min(upto, self._outbox.last))

    def _attach(self, attach: Attach) -> None:
        if attach.epoch < self._epoch:
            return  # an older server that does not know it has been replaced
        nonce = _nonce(attach.nonce)
        hello = self._hello(self._epoch, self._outbox.last, self._assembler.last)
        have = attach.have
        self._assembler.forget_partial()
        if attach.epoch > self._epoch:
            self._epoch = attach.epoch
            self._assembler = frames.Assembler()
            self._outbox = frames.Outbox(frames.GUEST_RECORD_BYTES_MAX)
            have = 0
            self._on_attach(True)
        else:
            self._on_attach(False)
            self._acknowledge(have)
        # Whatever was waiting to be written is dropped, a half written record too: the reader looks for the marker and for nothing before it.
        self.unwritten.clear()
        control = frames.split(hello.kind, encode(hello), 0, frames.GUEST_RECORD_BYTES_MAX)
        self.unwritten.append(frames.mark(nonce) + b"".join(map(frames.encode_record, control)))
        self.unwritten.extend(self._outbox.after(have))
        self._attached = True
        self.write()


def _nonce(text: str) -> bytes:
    try:
        nonce = bytes.fromhex(text)
    except ValueError as e:
        raise ProtocolError("an attach's nonce is not hexadecimal") from e
    if len(nonce) != frames.NONCE_BYTES:
        raise ProtocolError(f"an attach's nonce has {len(nonce)} bytes, not {frames.NONCE_BYTES}")
    return nonce
