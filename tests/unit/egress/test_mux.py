"""Many connections over one: the real porter against the door, and guests that are no porter at all."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import tracemalloc
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everforge.egress.bytestream import Cut
from everforge.egress.door import CONVERSATIONS_MAX, Door
from everforge.egress.limits import EgressLimits
from everforge.egress.mux import RECEIVE_BYTES, TURN_FRAMES_MAX, UNSENT_BYTES_MAX, Mux, Stream
from everforge.guest.porter import Porter
from everforge.wire import mux
from everforge.wire.errors import ProtocolError
from kit.doorway import PATIENCE_SECONDS, Program, doorway, porter, request

NONCE = bytes(range(mux.NONCE_BYTES))
Opened = Callable[[Stream], Awaitable[None]]


class Ground:
    """A Mux as a door has one, and what is opened on it."""

    def __init__(self, sock: socket.socket, action: Opened) -> None:
        self._action = action
        self.tasks: set[asyncio.Task[None]] = set()
        self.mux = Mux(sock, self.opened)

    def opened(self, stream: Stream) -> None:
        self.tasks.add(asyncio.ensure_future(self._run(stream)))

    async def _run(self, stream: Stream) -> None:
        with contextlib.suppress(Cut):
            await self._action(stream)

    def begin(self, nonce: bytes) -> None:
        self.mux.begin(nonce)

    async def close(self) -> None:
        self.mux.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def echo(stream: Stream) -> None:
    while data := await stream.read():
        await stream.write(data)
    await stream.end()


async def ignore(stream: Stream) -> None:
    await asyncio.Event().wait()


@asynccontextmanager
async def with_porter(action: Opened) -> AsyncGenerator[tuple[Ground, int]]:
    inside, outside = socket.socketpair()
    ground = Ground(outside, action)
    async with porter(ground, inside) as port:  # pyright: ignore[reportArgumentType]  as much of a door as a porter needs
        try:
            yield ground, port
        finally:
            await ground.close()


@asynccontextmanager
async def hostile(action: Opened) -> AsyncGenerator[tuple[Ground, socket.socket]]:
    """The guest's end of the socket is the test's."""
    inside, outside = socket.socketpair()
    inside.setblocking(False)
    ground = Ground(outside, action)
    ground.begin(NONCE)
    try:
        yield ground, inside
    finally:
        await ground.close()
        inside.close()


async def connect(port: int) -> Program:
    return Program(*await asyncio.open_connection("127.0.0.1", port))


async def say(sock: socket.socket, data: bytes) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        await asyncio.get_running_loop().sock_sendall(sock, data)


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


# --- the porter ------------------------------------------------------------------------------------------------------------------------------


async def test_many_connections_at_once_keep_their_bytes_apart() -> None:
    async def one(port: int, number: int) -> None:
        said = bytes([number]) * (200_000 + number)
        async with await connect(port) as program:
            sending = asyncio.ensure_future(send(program, said))
            assert await program.rest() == said
            await sending

    async def send(program: Program, said: bytes) -> None:
        program.writer.write(said)
        await program.writer.drain()
        program.writer.write_eof()

    async with with_porter(echo) as (_, port), asyncio.timeout(60):
        await asyncio.gather(*(one(port, number) for number in range(40)))


async def test_more_connections_than_there_are_streams_wait_their_turn() -> None:
    async def one(port: int) -> bytes:
        async with await connect(port) as program:
            program.writer.write(b"x")
            program.writer.write_eof()
            return await program.rest()

    async with with_porter(echo) as (_, port), asyncio.timeout(60):
        assert await asyncio.gather(*(one(port) for _ in range(2 * mux.STREAMS_MAX))) == [b"x"] * 2 * mux.STREAMS_MAX


async def test_either_side_may_end_first_and_the_other_goes_on() -> None:
    async def backwards(stream: Stream) -> None:
        await stream.write(b"first")
        await stream.end()
        said = b""
        while data := await stream.read():
            said += data
        heard.set_result(said)

    heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    async with with_porter(backwards) as (ground, port), await connect(port) as program, asyncio.timeout(PATIENCE_SECONDS):
        assert await program.rest() == b"first"
        program.writer.write(b"z" * 500_000)
        program.writer.write_eof()
        assert len(await heard) == 500_000
        assert ground.mux._streams == {}


async def test_a_cut_is_seen_at_the_other_end_in_both_directions() -> None:
    async def cutting(stream: Stream) -> None:
        await stream.read()
        stream.cut()

    async with with_porter(cutting) as (_, port), await connect(port) as program:
        program.writer.write(b"x")
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(program.reader.read(), PATIENCE_SECONDS)

    gone = asyncio.Event()

    async def noticing(stream: Stream) -> None:
        try:
            while await stream.read():
                pass
        except Cut:
            gone.set()

    async with with_porter(noticing) as (_, port):
        sock = socket.create_connection(("127.0.0.1", port))
        sock.sendall(b"x")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sock.close()
        await asyncio.wait_for(gone.wait(), PATIENCE_SECONDS)


async def test_a_program_that_does_not_read_holds_up_its_own_stream_alone() -> None:
    written: list[int] = []

    async def flood(stream: Stream) -> None:
        if await stream.read() == b"flood":
            while True:
                await stream.write(b"x" * 10_000)
                written.append(10_000)
        await stream.write(b"quick")
        await stream.end()

    async with with_porter(flood) as (ground, port), await connect(port) as slow:
        slow.writer.transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue]
        slow.writer.write(b"flood")
        async with asyncio.timeout(PATIENCE_SECONDS):
            for _ in range(10):
                async with await connect(port) as quick:
                    quick.writer.write(b"quick")
                    assert await quick.rest() == b"quick"
            while not ground.mux._streams[1]._credit_bytes < 70_000:  # until it stands still
                await asyncio.sleep(0.01)
        assert ground.mux._unsent_bytes < UNSENT_BYTES_MAX


async def test_a_server_that_does_not_read_holds_up_its_own_stream_alone() -> None:
    async def choosy(stream: Stream) -> None:
        if (await stream.read())[:1] == b"x":
            await asyncio.Event().wait()
        await stream.write(b"quick")
        await stream.end()

    async with with_porter(choosy) as (ground, port), await connect(port) as slow:
        sending = asyncio.ensure_future(pour(slow))
        async with asyncio.timeout(PATIENCE_SECONDS):
            for _ in range(10):
                async with await connect(port) as quick:
                    quick.writer.write(b"quick")
                    assert await quick.rest() == b"quick"
        assert len(ground.mux._streams[1]._held) <= mux.OUT_WINDOW_BYTES
        assert not sending.done()
        sending.cancel()


async def pour(program: Program) -> None:
    while True:
        program.writer.write(b"x" * 65536)
        await program.writer.drain()


async def test_a_new_porter_begins_anew_behind_what_the_last_one_had_half_said() -> None:
    inside, outside = socket.socketpair()
    ground = Ground(outside, echo)
    ground.begin(NONCE)
    inside.setblocking(False)
    await say(inside, mux.mark(NONCE) + mux.encode(mux.OPEN, 1) + mux.encode(mux.DATA, 1, b"old")[:5])
    await turns()
    async with porter(ground, inside) as port, await connect(port) as program:  # pyright: ignore[reportArgumentType]
        program.writer.write(b"new")
        program.writer.write_eof()
        assert await asyncio.wait_for(program.rest(), PATIENCE_SECONDS) == b"new"
        await ground.close()


def test_a_porter_ends_when_its_door_is_gone_and_cuts_what_it_holds() -> None:
    inside, outside = socket.socketpair()
    inside.setblocking(False)
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    with socket.create_connection(listening.getsockname()) as program, listening, inside:
        made = Porter(listening, inside.fileno(), NONCE)
        made._turn()
        outside.close()
        made.serve()
        assert program.recv(1) == b""


# --- hostile guests --------------------------------------------------------------------------------------------------------------------------

OPEN_1 = mux.encode(mux.OPEN, 1)
BROKEN = {
    "a frame of no kind": mux.HEADER.pack(99, 1, 0),
    "a frame longer than any": mux.HEADER.pack(mux.DATA, 1, mux.DATA_BYTES_MAX + 1),
    "data without any": mux.HEADER.pack(mux.DATA, 1, 0),
    "an opening with a body": mux.HEADER.pack(mux.OPEN, 2, 1) + b"x",
    "a stream that was never opened": mux.encode(mux.DATA, 7, b"x"),
    "a stream opened twice": OPEN_1,
    "stream 0": mux.encode(mux.OPEN, 0),
    "credit for what was never sent": mux.credit(1, 1),
    "all the credit there is": mux.credit(1, 2**32 - 1),
    "more data than there is credit for": mux.encode(mux.DATA, 1, bytes(mux.DATA_BYTES_MAX)) * 5,
    "data behind its end": mux.encode(mux.END, 1) + mux.encode(mux.DATA, 1, b"x"),
    "more streams than may be": b"".join(mux.encode(mux.OPEN, n) for n in range(2, 2 * mux.STREAMS_MAX + 3)),
}


@pytest.mark.parametrize("what", BROKEN)
async def test_a_guest_that_breaks_the_protocol_is_heard_no_more_and_may_begin_again(what: str) -> None:
    async with hostile(ignore) as (ground, guest):
        await say(guest, mux.mark(NONCE) + OPEN_1)
        await turns()
        assert len(ground.mux._streams) == 1
        await say(guest, BROKEN[what])
        await turns(100)
        assert ground.mux._streams == {}
        assert not ground.mux._reading
        other = bytes(reversed(NONCE))
        ground.begin(other)
        await say(guest, b"rubbish" + mux.mark(other) + OPEN_1)
        await turns()
        assert len(ground.mux._streams) == 1


async def test_without_the_nonce_nothing_that_a_guest_says_is_heard() -> None:
    async with hostile(ignore) as (ground, guest):
        await say(guest, (OPEN_1 + mux.mark(bytes(mux.NONCE_BYTES))) * 1000)
        await turns()
        assert ground.mux._streams == {}
        assert ground.mux._decoder is not None
        assert len(ground.mux._decoder._buffer) < 100


async def test_what_guests_send_costs_no_more_memory_than_their_windows() -> None:
    """In the smallest frames there are, and nobody takes it."""
    async with hostile(ignore) as (ground, guest):
        await say(guest, mux.mark(NONCE) + b"".join(mux.encode(mux.OPEN, n) for n in range(1, 11)))
        while len(ground.mux._streams) < 10:
            await asyncio.sleep(0)
        frames = b"".join(mux.encode(mux.DATA, n, b"ab") * 1000 for n in range(1, 11))
        tracemalloc.start()
        try:
            await say(guest, frames)
            while sum(len(stream._held) for stream in ground.mux._streams.values()) < 20_000:
                await asyncio.sleep(0)
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert held < 200_000  # 20 KB of them, and buffers; each an object of its own would be half a megabyte


async def test_a_guest_that_opens_and_cuts_all_the_time_keeps_no_conversation_and_others_have_their_turn() -> None:
    async def never(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    async with doorway(names={}) as d:
        inside, outside = socket.socketpair()
        inside.setblocking(False)
        world = d.door._world
        world = replace(world, outside=replace(world.outside, lookup=never), limits=EgressLimits(connections_per_second=0))
        door = Door(outside, "hostile", world, lambda: d.policy, tuple, d.notes)
        door.begin(NONCE)
        asked = request("http://example.com/")
        await say(inside, mux.mark(NONCE))
        for first in range(1, 401, 100):
            numbers, before = range(first, first + 100), len(door._tasks)
            await say(inside, b"".join(mux.encode(mux.OPEN, n) + mux.encode(mux.DATA, n, asked) for n in numbers))
            async with asyncio.timeout(PATIENCE_SECONDS):
                while len(door._tasks) < min(before + 100, CONVERSATIONS_MAX):
                    await asyncio.sleep(0)
            await turns(10)  # they ask for an address now, and wait for it whoever has cut them
            await say(inside, b"".join(mux.encode(mux.RESET, n) for n in numbers))
            assert b"502" in await d.ask(asked)
        assert len(door._tasks) == CONVERSATIONS_MAX
        await door.close()
        inside.close()


async def test_tiny_frames_are_taken_a_few_at_a_time_so_that_others_have_their_turn() -> None:
    async with hostile(ignore) as (ground, guest):
        await say(guest, mux.mark(NONCE) + OPEN_1)
        await turns()
        guest.send(mux.encode(mux.DATA, 1, b"x") * 1000)
        ground.mux._receive()
        assert len(ground.mux._streams[1]._held) == TURN_FRAMES_MAX
        await turns(50)
        assert len(ground.mux._streams[1]._held) == 1000


async def test_a_guest_that_never_reads_is_not_heard_either_before_what_it_is_owed_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everforge.egress.mux.UNSENT_BYTES_MAX", 8192)

    async def cutting(stream: Stream) -> None:
        stream.cut()

    async with hostile(cutting) as (ground, guest):
        frames = b"".join(mux.encode(mux.OPEN, n) for n in range(1, 120_000))
        flooding = asyncio.ensure_future(say(guest, mux.mark(NONCE) + frames))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while ground.mux._reading or ground.mux._frames is not None:
                await asyncio.sleep(0)
        assert not flooding.done()
        assert ground.mux._last < 119_999
        assert ground.mux._unsent_bytes < 16 * 8192 + RECEIVE_BYTES
        flooding.cancel()
        await asyncio.gather(flooding, return_exceptions=True)


# --- the codec -------------------------------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 2**32 - 1), st.binary(min_size=1, max_size=50)), max_size=20),
    st.binary(max_size=40),
    st.lists(st.integers(0, 2000), max_size=5),
)
def test_frames_come_out_as_they_went_in_however_they_are_cut(said: list[tuple[int, bytes]], before: bytes, cuts: list[int]) -> None:
    stream = before + mux.mark(NONCE) + b"".join(mux.encode(mux.DATA, number, body) for number, body in said)
    decoder = mux.Decoder(NONCE)
    found: list[mux.Frame] = []
    begin = 0
    for end in [*sorted(min(cut, len(stream)) for cut in cuts), len(stream)]:
        found += decoder.feed(stream[begin:end])
        begin = end
    assert found == [mux.Frame(mux.DATA, number, body) for number, body in said]


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_frames_or_a_protocol_error(data: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        for frame in mux.Decoder().feed(data):
            assert frame.kind in (mux.OPEN, mux.DATA, mux.CREDIT, mux.END, mux.RESET)
