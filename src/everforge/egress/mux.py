"""The door's end of the connections of a machine's programs, many over one socket."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Iterator

from everforge.wire import mux
from everforge.wire.errors import ProtocolError

from .bytestream import READ_BYTES, HungUp

RECEIVE_BYTES = 256 * 1024
TURN_FRAMES_MAX = 64  # taken at once; then other machines have their turn, though one sends nothing but tiny frames
UNSENT_BYTES_MAX = 512 * 1024  # towards the guest; above it writers wait, and above twice that the guest is not heard either
GRANT_BYTES = mux.OUT_WINDOW_BYTES // 4  # taken, before credit is given for it


class Stream:
    """One connection of a program. A ByteStream."""

    def __init__(self, owner: Mux, number: int) -> None:
        self._mux = owner
        self.number = number
        self._held = bytearray()  # and not yet taken; one buffer, since a guest may send it byte by byte
        self._taken_bytes = 0  # and credit not yet given
        self._credit_bytes = mux.IN_WINDOW_BYTES
        self._ended = False  # no more from the program
        self._said_end = False
        self.is_cut = False
        self._stirred = asyncio.Event()

    def stir(self) -> None:
        self._stirred.set()

    # --- what the guest says

    def take(self, data: bytes) -> None:
        if len(self._held) + len(data) + self._taken_bytes > mux.OUT_WINDOW_BYTES or self._ended:
            raise ProtocolError("the guest sends more than it has credit for")
        self._held += data
        self.stir()

    def take_credit(self, size_bytes: int) -> None:
        self._credit_bytes += size_bytes
        if self._credit_bytes > mux.IN_WINDOW_BYTES:
            raise ProtocolError("the guest gives more credit than there is")
        self.stir()

    def take_end(self) -> None:
        self._ended = True
        self.stir()

    def lose(self) -> None:
        self.is_cut = True
        self._held.clear()
        self.stir()

    @property
    def over(self) -> bool:
        return self._ended and self._said_end and not self._held

    # --- ByteStream

    async def read(self) -> bytes:
        while not self._held:
            if self.is_cut:
                raise HungUp("the machine has cut the connection")
            if self._ended:
                return b""
            await self._wait()
        with memoryview(self._held) as view:
            data = bytes(view[:READ_BYTES])
        del self._held[:READ_BYTES]
        self._taken_bytes += len(data)
        self._mux.forget_if_over(self)
        if self._taken_bytes >= GRANT_BYTES and not self._ended:
            self._mux.send(mux.credit(self.number, self._taken_bytes))
            self._taken_bytes = 0
        return data

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            if self.is_cut or self._said_end:
                raise HungUp("the machine has cut the connection")
            room = min(self._credit_bytes, mux.DATA_BYTES_MAX)
            if room and self._mux.has_room:
                piece, view = view[:room], view[room:]
                self._credit_bytes -= len(piece)
                self._mux.send(mux.encode(mux.DATA, self.number, piece))
            elif room:
                await self._mux.until_room()
            else:
                await self._wait()

    async def end(self) -> None:
        if not self.is_cut and not self._said_end:
            self._said_end = True
            self._mux.send(mux.encode(mux.END, self.number))
            self._mux.forget_if_over(self)

    def cut(self) -> None:
        if not self.is_cut:
            self.lose()
            if not self.over:
                self._mux.send(mux.encode(mux.RESET, self.number))
            self._mux.forget(self)

    async def _wait(self) -> None:
        self._stirred.clear()
        await self._stirred.wait()


class Mux:
    """Owns the socket. `opened` is told of every new stream. A guest that has broken the protocol, or is gone, must knock again."""

    def __init__(self, sock: socket.socket, opened: Callable[[Stream], None]) -> None:
        self._sock = sock
        self._opened = opened
        self._loop = asyncio.get_running_loop()
        self._decoder: mux.Decoder | None = None
        self._frames: Iterator[mux.Frame] | None = None  # received, and not all taken yet
        self._streams: dict[int, Stream] = {}
        self._last = 0
        self._unsent: deque[memoryview | bytes] = deque()
        self._unsent_bytes = 0
        self._room = asyncio.Event()
        self._reading = self._writing = False
        self._closed = False
        sock.setblocking(False)

    def begin(self, nonce: bytes) -> None:
        """A new porter comes. What an earlier one had open is cut, and what is still on its way from it is skipped."""
        self._drop_all()
        self._decoder, self._frames = mux.Decoder(nonce), None
        self.send(mux.mark(nonce))
        self._watch()

    def close(self) -> None:
        if not self._closed:
            self._drop_all()
            self._closed = True
            self._unwatch()
            self._sock.close()

    # --- streams

    @property
    def has_room(self) -> bool:
        return self._unsent_bytes < UNSENT_BYTES_MAX

    async def until_room(self) -> None:
        self._room.clear()
        await self._room.wait()

    def forget(self, stream: Stream) -> None:
        if self._streams.get(stream.number) is stream:
            del self._streams[stream.number]

    def forget_if_over(self, stream: Stream) -> None:
        if stream.over:
            self.forget(stream)

    def _drop_all(self) -> None:
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.lose()
        self._last = 0
        self._unsent.clear()
        self._unsent_bytes = 0
        self._room.set()

    def _fail(self) -> None:
        """Nothing more is heard until the next porter."""
        self._decoder = self._frames = None
        self._drop_all()
        self._unwatch()

    # --- the socket

    def _watch(self) -> None:
        if not self._reading and not self._closed and self._decoder is not None and self._frames is None:
            self._reading = True
            self._loop.add_reader(self._sock, self._receive)

    def _pause(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._sock)

    def _unwatch(self) -> None:
        self._pause()
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._sock)

    def _receive(self) -> None:
        if self._unsent_bytes >= 2 * UNSENT_BYTES_MAX:  # it does not read: then it is not heard either, or what we owe it would grow
            self._pause()
            return
        try:
            data = self._sock.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data or self._decoder is None:
            self._fail()
            return
        self._frames = self._decoder.feed(data)
        self._take_some()

    def _take_some(self) -> None:
        """A turn's worth of what was received; the rest comes in the next turn of the loop, and nothing more is received before."""
        frames = self._frames
        if frames is None or self._closed:
            return
        self._pause()
        try:
            for _ in range(TURN_FRAMES_MAX):
                self._take(next(frames))
        except StopIteration:
            self._frames = None
            self._watch()
        except ProtocolError:
            self._fail()
        else:
            self._loop.call_soon(self._take_some)

    def _take(self, frame: mux.Frame) -> None:
        if frame.kind == mux.OPEN:
            if frame.stream <= self._last or len(self._streams) >= 2 * mux.STREAMS_MAX:
                raise ProtocolError("the guest opens a stream that it may not")
            self._last = frame.stream
            stream = self._streams[frame.stream] = Stream(self, frame.stream)
            self._opened(stream)
            return
        stream = self._streams.get(frame.stream)
        if stream is None:
            if frame.stream > self._last:
                raise ProtocolError("the guest speaks of a stream that was never opened")
            return  # cut on this side a moment ago
        if frame.kind == mux.DATA:
            stream.take(frame.body)
        elif frame.kind == mux.CREDIT:
            stream.take_credit(mux.credit_of(frame))
        elif frame.kind == mux.END:
            stream.take_end()
            self.forget_if_over(stream)
        else:
            stream.lose()
            self.forget(stream)

    def send(self, data: bytes) -> None:
        if not self._closed:
            self._unsent.append(data)
            self._unsent_bytes += len(data)
            if not self._writing:
                self._write()

    def _write(self) -> None:
        try:
            self._write_now()
        except BlockingIOError:
            pass
        except OSError:
            self._fail()
            return
        if self.has_room:
            self._room.set()
            self._watch()
        self._want_to_write()

    def _write_now(self) -> None:
        while self._unsent:
            sent = self._sock.send(self._unsent[0])
            self._unsent_bytes -= sent
            if sent == len(self._unsent[0]):
                self._unsent.popleft()
            else:
                self._unsent[0] = memoryview(self._unsent[0])[sent:]

    def _want_to_write(self) -> None:
        if bool(self._unsent) != self._writing:
            self._writing = not self._writing
            if self._writing:
                self._loop.add_writer(self._sock, self._write)
            else:
                self._loop.remove_writer(self._sock)
