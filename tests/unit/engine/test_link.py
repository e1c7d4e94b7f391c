from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Iterator
from typing import cast

import pytest
import uvloop

from everforge.engine import link as link_module
from everforge.engine.link import PIPE_BYTES, READ_BYTES_MAX, PipeLink
from everforge.machines.guestline import GuestLine
from everforge.wire.errors import InvalidInput, SandboxLost
from everforge.wire.frames import RECORD_BYTES_MAX, Assembler, Decoder
from everforge.wire.messages import Answer, decode_from_keeper

ANSWERS = 24


class Guest:
    """The other ends of a link's two pipes."""

    def __init__(self) -> None:
        self.stdin, to_guest = os.pipe()
        from_guest, self.stdout = os.pipe()
        self.link = PipeLink(from_guest, to_guest)

    def close(self) -> None:
        for number in (self.stdin, self.stdout):
            if number >= 0:
                os.close(number)
        self.stdin = self.stdout = -1


@pytest.fixture
def guest() -> Iterator[Guest]:
    guest = Guest()
    yield guest
    guest.link.close()
    guest.close()


async def test_bytes_go_both_ways(guest: Guest) -> None:
    await guest.link.send(b"to the guest")
    assert os.read(guest.stdin, 100) == b"to the guest"
    receiving = asyncio.create_task(guest.link.receive())
    await asyncio.sleep(0)
    os.write(guest.stdout, b"from the guest")
    assert await receiving == b"from the guest"


async def test_what_is_received_at_once_is_bounded(guest: Guest) -> None:
    os.set_blocking(guest.stdout, False)
    sent = 0
    try:
        while sent < 4 * READ_BYTES_MAX:
            sent += os.write(guest.stdout, bytes(65536))
    except BlockingIOError:
        pass
    total = 0
    while total < sent:
        data = await guest.link.receive()
        assert 0 < len(data) <= READ_BYTES_MAX
        total += len(data)


async def test_a_full_pipe_makes_the_sender_wait_and_no_record_is_split(guest: Guest) -> None:
    records = [bytes([n % 256]) * RECORD_BYTES_MAX for n in range(PIPE_BYTES // RECORD_BYTES_MAX + 24)]

    async def send_all() -> None:
        for record in records:
            await guest.link.send(record)

    sending = asyncio.create_task(send_all())
    await asyncio.sleep(0.05)
    assert not sending.done()
    for record in records:
        assert await asyncio.to_thread(os.read, guest.stdin, RECORD_BYTES_MAX) == record
    await sending


async def test_a_close_in_the_moment_when_there_is_room_again_leaves_the_loop_nothing_to_watch() -> None:
    stdin, to_guest = os.pipe()
    from_guest, stdout = os.pipe()
    other = os.dup(to_guest)  # the pipe outlives the link, as that of a sandbox does
    link = PipeLink(from_guest, to_guest)
    sending = asyncio.create_task(_fill(link))
    await asyncio.sleep(0.01)
    os.read(stdin, PIPE_BYTES)
    for _ in range(1000):
        if not (waiting := link._writable) or waiting.done():
            break
        await asyncio.sleep(0)
    link.close()
    assert not asyncio.get_running_loop().remove_writer(to_guest)
    with pytest.raises(SandboxLost):
        await sending
    for number in (stdin, stdout, other):
        os.close(number)


async def _fill(link: PipeLink) -> None:
    while True:
        await link.send(bytes(RECORD_BYTES_MAX))


def test_many_large_answers_get_through_to_a_reader_that_falters_on_both_kinds_of_loop() -> None:
    """Nobody is woken for nothing, and nobody is forgotten: whoever wrote into a full pipe goes on when there is room."""
    for run in (uvloop.run, asyncio.run):
        assert run(_answer_a_faltering_reader()) == list(range(ANSWERS))


async def _answer_a_faltering_reader() -> list[int]:
    stdin, to_guest = os.pipe()
    from_guest, stdout = os.pipe()
    link = PipeLink(from_guest, to_guest)
    line, heard = GuestLine(link), list[int]()

    def read() -> None:
        decoder, assembler = Decoder(RECORD_BYTES_MAX), Assembler()
        for turn in itertools.count():
            for record in decoder.feed(os.read(stdin, (1, 5000, PIPE_BYTES)[turn % 3])):
                if message := assembler.add(record):
                    heard.append(cast(Answer, decode_from_keeper(message.kind, message.body)).call)
            if len(heard) == ANSWERS:
                return
            if turn % 50 == 0:
                time.sleep(0.001)

    async with asyncio.timeout(30):
        await asyncio.gather(asyncio.to_thread(read), *(line.send(Answer(0, n, "x" * 1_000_000)) for n in range(ANSWERS)))
    link.close()
    os.close(stdin)
    os.close(stdout)
    return heard


async def test_a_message_whose_sender_went_away_in_the_middle_is_whole_all_the_same() -> None:
    stdin, to_guest = os.pipe()
    from_guest, stdout = os.pipe()
    link = PipeLink(from_guest, to_guest)
    line, heard = GuestLine(link), list[int]()
    await line.send(Answer(0, 0, "x" * (PIPE_BYTES // 2)))
    sending = asyncio.ensure_future(line.send(Answer(0, 1, "x" * 1_000_000)))
    await asyncio.sleep(0.01)  # the pipe is full, and it waits
    sending.cancel()
    await asyncio.wait([sending])
    assert sending.cancelled()
    behind = asyncio.ensure_future(line.send(Answer(0, 2, "y")))

    def read() -> None:
        decoder, assembler = Decoder(RECORD_BYTES_MAX), Assembler()
        while len(heard) < 3:
            for record in decoder.feed(os.read(stdin, PIPE_BYTES)):
                if message := assembler.add(record):
                    heard.append(cast(Answer, decode_from_keeper(message.kind, message.body)).call)

    async with asyncio.timeout(30):
        await asyncio.gather(asyncio.to_thread(read), behind)
    link.close()
    os.close(stdin)
    os.close(stdout)
    assert heard == [0, 1, 2]


async def test_a_guest_that_reads_nothing_is_given_up(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "WRITE_SECONDS", 0.1)
    receiving = asyncio.create_task(guest.link.receive())
    async with asyncio.timeout(10):
        with pytest.raises(SandboxLost):
            await _fill(guest.link)
        assert await receiving == b""


async def test_a_guest_that_is_gone_is_told_to_reader_and_writer(guest: Guest) -> None:
    receiving = asyncio.create_task(guest.link.receive())
    await asyncio.sleep(0)
    guest.close()
    assert await receiving == b""
    with pytest.raises(SandboxLost):
        await guest.link.send(b"anyone?")


async def test_closing_wakes_those_who_wait(guest: Guest) -> None:
    receiving = asyncio.create_task(guest.link.receive())
    await asyncio.sleep(0)
    guest.link.close()
    guest.link.close()
    assert await receiving == b""
    assert await guest.link.receive() == b""
    with pytest.raises(SandboxLost):
        await guest.link.send(b"x")


async def test_a_record_that_a_pipe_cannot_take_at_once_is_refused(guest: Guest) -> None:
    with pytest.raises(InvalidInput):
        await guest.link.send(bytes(RECORD_BYTES_MAX + 1))


async def test_a_cancelled_reader_leaves_the_link_usable(guest: Guest) -> None:
    receiving = asyncio.create_task(guest.link.receive())
    await asyncio.sleep(0)
    receiving.cancel()
    await asyncio.wait([receiving])
    os.write(guest.stdout, b"still here")
    assert await guest.link.receive() == b"still here"
