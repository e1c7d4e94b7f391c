# Made from _async/channel.py by tools/make_sync.py; change it there.
"""The WebSocket of one machine: requests and their replies, entries of the tape for whoever listens, and a new connection after every cut.

No task of its own: whoever waits for something reads, for itself and for all others that wait at that moment.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from everforge.wire.errors import EverforgeError, MachineNotFound, ProtocolError, StillRunning, Unauthenticated, Uncertain
from everforge.wire.ids import machine_name
from everforge.wire.sentences import say

from ..decoding import entry as checked
from ..decoding import parse
from ..failures import Closed, Cut, Refusal, Unreached, error_from, error_of, foreign
from ..pauses import Deadline, Patience
from ..results import behind
from .door import SILENCE_SECONDS, Door, Query
from .socket import Socket
from .tape import RECONNECT_SECONDS, Entry, TapeReader
from .transport import Condition, sleep, wait

OPEN_SECONDS = 10.0
PING_SECONDS = 20.0  # of silence, before the other side is asked whether it lives
PONG_SECONDS = 20.0  # that it has to say so
INBOX_ENTRIES_MAX = 10_000  # for a listener that does not listen; it reads the rest from the tape, where it is kept


FOR_EVER = Deadline(None)


class Listener:
    """Somebody who wants certain entries."""

    def __init__(self, channel: Channel, wants: Callable[[Entry], bool], wait_seconds: float | None = None) -> None:
        self._channel = channel
        self._wants = wants
        self._inbox: deque[Entry] = deque()
        self.deadline = Deadline(wait_seconds)
        self._reader: TapeReader | None = None
        self._behind: int | None = None  # the last entry before the inbox was full

    def offer(self, entry: Entry) -> None:
        if self._behind is None and self._wants(entry):
            if len(self._inbox) < INBOX_ENTRIES_MAX:
                self._inbox.append(entry)
            else:
                self._behind = self._inbox[-1]["cursor"]

    def next(self) -> Entry:
        if not self._inbox and self._behind is not None:
            return self._next_on_tape(self._behind)
        if not self._channel.until(lambda: bool(self._inbox) or self._behind is not None, self.deadline):
            raise StillRunning(say("nothing_came"))
        return self._inbox.popleft()

    def _next_on_tape(self, after: int) -> Entry:
        if self._reader is None:
            self._reader = self._channel.reader(after, self.deadline)
        while True:
            entry = self._reader.next()
            if self._wants(entry):
                return entry

    def finish(self) -> None:
        self.close()

    def close(self) -> None:
        self._channel.forget(self)
        if self._reader is not None:
            self._reader.close()


class Channel:
    def __init__(self, door: Door, machine: str, after: int | None) -> None:
        self._door, self._path = door, f"/machine/{machine_name(machine)}"
        self.cursor = after  # the last entry seen; None before the first connection: from now on
        self._socket: Socket | None = None
        self._connections = 0
        self._patience = Patience(RECONNECT_SECONDS)  # renewed by whatever is heard; that a connection could be made is not enough
        self._silent_until = 0.0  # when it has been silent for so long that something must be done
        self._pinged = False
        self._turn = Condition()
        self._connecting = False
        self._reading = False
        self._requests = 0
        self._sending: set[int] = set()  # requests that are on their way out at this moment
        self._replies: dict[int, dict[str, Any] | None] = {}  # by request; None while it is waited for
        self._listeners: list[Listener] = []

    def listen(self, wants: Callable[[Entry], bool], wait_seconds: float | None = None) -> Listener:
        listener = Listener(self, wants, wait_seconds)
        self._listeners.append(listener)
        return listener

    def forget(self, listener: Listener) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)

    def reader(self, after: int, deadline: Deadline) -> TapeReader:
        return TapeReader(self._door, f"{self._path}/tape", after, deadline)

    # --- requests ----------------------------------------------------------------------------------------------------------------------------

    def ask(self, message: dict[str, Any], again: bool) -> dict[str, Any]:
        """`again`: may it be sent twice, when the connection was cut before the reply?"""
        self._requests += 1
        number = self._requests
        text = json.dumps({**message, "request_id": number}, allow_nan=False)
        self._replies[number] = None
        try:
            while True:
                sent, deadline = self._send(text, number, message["type"])
                reply = self._reply(number, sent, message["type"], deadline)
                if reply is not None:
                    return _good(reply)
                if not again:
                    raise Uncertain(say("cut_unsure", url=self._door.base_url))
        finally:
            del self._replies[number]

    def _reply(self, number: int, sent: int, what: str, deadline: Deadline) -> dict[str, Any] | None:
        """None when the connection that the request went out on is gone."""
        if self.until(lambda: self._replies[number] is not None or self._connections != sent or self._socket is None, deadline):
            return self._replies[number]
        raise self._silent(what)

    def _send(self, text: str, number: int, what: str) -> tuple[int, Deadline]:
        """On which connection it went out, and until when the reply may come: a server that does not take the request is as silent as one that does
        not answer it."""
        while True:
            socket = self._connected(FOR_EVER)
            sent, deadline = self._connections, Deadline(SILENCE_SECONDS)
            self._sending.add(number)
            try:
                socket.send(text, SILENCE_SECONDS)
            except Cut as e:
                if deadline.passed:
                    self._drop(socket)
                    raise self._silent(what) from e
                self._lost(socket, e, FOR_EVER)
            else:
                return sent, deadline
            finally:
                self._sending.discard(number)

    def _silent(self, what: str) -> Uncertain:
        return Uncertain(say("silent", url=self._door.base_url, seconds=f"{SILENCE_SECONDS:g}", what=what))

    # --- reading -----------------------------------------------------------------------------------------------------------------------------

    def until(self, ready: Callable[[], bool], deadline: Deadline | None = None) -> bool:
        """Reads until it is so; False when the deadline came first."""
        deadline = deadline or FOR_EVER
        while True:
            with self._turn:
                while self._reading and not ready():
                    wait(self._turn, deadline.within(PING_SECONDS))  # whoever reads tells all others at every frame
                    if deadline.passed:
                        break
                if ready():
                    return True
                if deadline.passed:
                    return False
                self._reading = True
            try:
                self._read(deadline)
            finally:
                with self._turn:
                    self._reading = False
                    self._turn.notify_all()

    def _read(self, deadline: Deadline) -> None:
        """One frame, if one comes in time. Only one at a time is here."""
        socket = self._connected(deadline)
        try:
            text = socket.receive(deadline.within(max(0.001, self._silent_until - time.monotonic())))
            if text is None and time.monotonic() >= self._silent_until:
                self._doubt(socket, deadline)
        except Cut as e:
            self._lost(socket, e, deadline)
        else:
            if text is not None:
                self._trust()
                self._patience.renew()
                self._dispatch(text)

    def _trust(self) -> None:
        """Something was heard just now."""
        self._pinged, self._silent_until = False, time.monotonic() + PING_SECONDS

    def _doubt(self, socket: Socket, deadline: Deadline) -> None:
        """Nothing has been heard for long."""
        if self._pinged:
            raise Cut("it says nothing any more")
        if not self._sending:  # else that asks as well as any ping, which would only wait behind it
            socket.send('{"type":"ping","request_id":0}', deadline.within(PONG_SECONDS))
            self._pinged = True
        self._silent_until = time.monotonic() + PONG_SECONDS

    def _dispatch(self, text: str) -> None:
        frame = parse(text)
        number = frame.get("request_id")
        if frame.get("type") in ("reply", "error"):
            if isinstance(number, int) and number in self._replies:
                self._replies[number] = frame
            elif frame["type"] == "error" and number is None:
                raise _error(frame)
            return
        found = checked(frame)
        fresh = None if found is None or self.cursor is None else behind(found, self.cursor)
        if fresh is not None:
            self.cursor = fresh["cursor"]
            for listener in self._listeners:
                listener.offer(dict(fresh))

    # --- connections -------------------------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        self._connected(FOR_EVER)

    def _connected(self, deadline: Deadline) -> Socket:
        """Made by one, for all who need it meanwhile."""
        while True:
            with self._turn:
                if self._socket is not None:
                    return self._socket
                if self._connecting:
                    wait(self._turn, deadline.within(PING_SECONDS))
                    if deadline.passed:
                        raise StillRunning(say("no_connection_in_time"))
                    continue
                self._connecting = True
            try:
                return self._connect_patiently(deadline)
            finally:
                with self._turn:
                    self._connecting = False
                    self._turn.notify_all()

    def _connect_patiently(self, deadline: Deadline) -> Socket:
        while not deadline.passed:
            try:
                self._socket = self._connect(deadline)
            except Unreached as e:
                error = self._door.unreachable(e)
            except Cut as e:
                error = Uncertain(say("cut", url=self._door.base_url), cause=str(e))
            except Refusal as e:
                error = error_of(e.status, e.headers, e.body, self._door.base_url)
            else:
                self._door.met = True
                self._door.tell(connected=True)
                return self._socket
            pause = self._patience.pause(error.retry_after_seconds) if self._door.may_ask_again(error, again=True) else None
            if pause is None:
                raise error
            sleep(deadline.within(pause))
        raise StillRunning(say("no_connection_in_time"))

    def _connect(self, deadline: Deadline) -> Socket:
        self._door.check_open()
        query: Query = {"after": self.cursor}
        url = self._door.url(f"{self._path}/connect", query).replace("http", "ws", 1)
        socket = Socket.open(url, self._door.headers, deadline.within(OPEN_SECONDS))
        try:
            said = socket.receive(deadline.within(PONG_SECONDS))
            if said is None:
                raise Cut("it says nothing")
            first = parse(said)
            if first.get("type") != "connected" or not isinstance(first.get("position"), int):
                raise foreign(self._door.base_url)
        except BaseException:
            socket.drop()
            raise
        if self.cursor is None:
            self.cursor = first["position"]
        self._connections += 1
        self._trust()
        return socket

    def _lost(self, socket: Socket, cut: Cut, deadline: Deadline) -> None:
        self._drop(socket)
        if isinstance(cut, Closed):
            _check_closed(cut, self._door.base_url)
        self._door.tell(connected=False)
        pause = self._patience.pause()
        if pause is None:
            raise self._door.unreachable(cut)
        sleep(deadline.within(pause))

    def _drop(self, socket: Socket) -> None:
        """The next one who needs a connection makes one."""
        if self._socket is socket:
            self._socket = None
            socket.drop()

    def close(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.close()


def _check_closed(closed: Closed, base_url: str) -> None:
    """Reasons after which there is no use in coming back."""
    if closed.status == 4001:
        raise Unauthenticated(say("token_revoked", url=base_url))
    if closed.status == 4404:
        raise MachineNotFound(say("machine_deleted"))
    if closed.status == 1008:
        raise ProtocolError(f"the server at {base_url} ended the connection: {closed}")


def _good(reply: dict[str, Any]) -> dict[str, Any]:
    if reply["type"] == "error":
        raise _error(reply)
    return reply


def _error(frame: dict[str, Any]) -> EverforgeError:
    found = frame.get("error")
    return error_from(found if isinstance(found, dict) else {})  # pyright: ignore[reportUnknownArgumentType]
