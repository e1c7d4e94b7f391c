"""The guest driven by hand: one write, reads until the answer, and nothing else. What the keeper, the tape and the link are measured against."""

from __future__ import annotations

import os
import secrets
import select
import time
from typing import TypeVar

from everforge.wire import frames
from everforge.wire.messages import Ack, Attach, End, Go, GuestMessage, Hello, Run, Thawed, decode_from_guest, encode

ANSWER_SECONDS = 60.0
EPOCH = 1_000_000  # above any that a snapshot was saved in

M = TypeVar("M", bound=GuestMessage)


class Hand:
    def __init__(self, to_guest: int, from_guest: int) -> None:
        self._to_guest = to_guest
        self._from_guest = from_guest
        self._decoder = frames.Decoder(frames.GUEST_RECORD_BYTES_MAX)
        self._sent = self._received = self._instruction = 0

    def attach(self) -> Hello:
        nonce = secrets.token_bytes(frames.NONCE_BYTES)
        self._decoder = frames.Decoder(frames.GUEST_RECORD_BYTES_MAX, nonce)
        self._write(_record(Attach(nonce.hex(), EPOCH, 0), 0))
        return self._read(Hello)

    def go(self) -> None:
        self._send(Go(time_ns=time.time_ns()))
        self._read(Thawed)

    def run(self, code: str) -> str | None:
        self.give(code)
        return value_of(self._read(End))

    def give(self, code: str) -> None:
        self._instruction += 1
        self._send(Run(self._instruction, code))

    def look(self) -> End | None:
        """Takes what has come, without waiting: the end of what was given, if that is among it."""
        return self._take(End)

    def _send(self, message: GuestMessage) -> None:
        """With the acknowledgement of what came before, in one write."""
        self._sent += 1
        self._write(_record(Ack(self._received), 0) + _record(message, self._sent))

    def _write(self, data: bytes) -> None:
        if os.write(self._to_guest, data) != len(data):
            raise RuntimeError("the guest does not read")

    def _read(self, kind: type[M]) -> M:
        while True:
            if not select.select([self._from_guest], [], [], ANSWER_SECONDS)[0]:
                raise RuntimeError(f"the guest did not answer within {ANSWER_SECONDS:g} s")
            if (message := self._take(kind)) is not None:
                return message

    def _take(self, kind: type[M]) -> M | None:
        data = os.read(self._from_guest, 1 << 20)
        if not data:
            raise RuntimeError("the guest is gone")
        for record in self._decoder.feed(data):
            self._received = record.number or self._received
            if record.kind == kind.kind:
                message = decode_from_guest(record.kind, record.payload)
                assert isinstance(message, kind)
                return message
        return None


def value_of(end: End) -> str | None:
    if end.end != "value":
        raise RuntimeError(f"{end.error_name}: {end.error_message}")
    return end.value


def _record(message: GuestMessage, number: int) -> bytes:
    (record,) = frames.split(message.kind, encode(message), number, frames.RECORD_BYTES_MAX)
    return frames.encode_record(record)
