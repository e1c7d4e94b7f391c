"""A completion that an interpreter is at: it is waited for only so long, and gives way to an instruction at once."""

from __future__ import annotations

import json
import signal
import time

from ..wire.errors import ProtocolError
from ..wire.messages import Complete, Completed, decode_from_interpreter, encode
from . import channel, processes
from .link import GuestLink
from .worker import Worker

PATIENCE_SECONDS = 2.0  # then it is interrupted: some object takes its time to say what it is
GRACE_SECONDS = 1.0  # after an interrupt; then instructions queue up behind it


class Completing:
    def __init__(self, link: GuestLink) -> None:
        self._link = link
        self._worker: Worker | None = None
        self._token = 0
        self._interrupted = False
        self.deadline: float | None = None

    @property
    def busy(self) -> bool:
        return self._worker is not None

    def begin(self, wanted: Complete, worker: Worker | None) -> None:
        """`worker` is None when none is free for it."""
        if worker is None or self.busy:
            self._tell(Completed(wanted.token, busy=True))
            return
        self._worker, self._token, self._interrupted = worker, wanted.token, False
        self.deadline = time.monotonic() + PATIENCE_SECONDS
        worker.order(channel.COMPLETE, json.dumps({"token": wanted.token, "code": wanted.code, "cursor": wanted.cursor}).encode())

    def take(self, body: bytes) -> None:
        """What the interpreter has found; one that was given up comes late, and counts no more."""
        told = decode_from_interpreter(Completed.kind, body)
        if not isinstance(told, Completed):
            raise ProtocolError("a completion is not one")
        if self.busy and told.token == self._token:
            self._tell(Completed(self._token, busy=True) if self._interrupted else told)
            self._forget()

    def hurry(self) -> None:
        """An instruction waits."""
        if self._worker is not None and not self._interrupted:
            self._interrupted = True
            self.deadline = time.monotonic() + GRACE_SECONDS
            processes.send_signal(self._worker.pid, signal.SIGINT)

    def mind(self, now: float) -> None:
        if self.deadline is not None and now >= self.deadline:
            if self._interrupted:
                self.end()
            else:
                self.hurry()

    def end(self) -> None:
        """Without an answer of the interpreter's."""
        if self.busy:
            self._tell(Completed(self._token, busy=True))
            self._forget()

    def _forget(self) -> None:
        self._worker = self.deadline = None

    def _tell(self, told: Completed) -> None:
        self._link.send_control(told.kind, encode(told))
