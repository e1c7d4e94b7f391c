"""A guest that says much, and what is left of the event loop for others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from everforge.machines.guestline import ACK_EVERY_WEIGHT, BATCH_MAX, LARGE_BYTES, GuestLine, Heard
from everforge.machines.weir import Flow, Weir
from everforge.wire import frames
from everforge.wire.errors import SandboxLost
from everforge.wire.ids import MachineId
from everforge.wire.messages import Ack, End, FileTold, GuestMessage, Interrupt, Outputs, decode_from_keeper, encode


class Said:
    """A link over which everything has come already."""

    def __init__(self, messages: Sequence[GuestMessage]) -> None:
        self._data = b""
        number = 1
        for message in messages:
            records = frames.split(message.kind, encode(message), 0 if message.control else number, frames.GUEST_RECORD_BYTES_MAX)
            self._data += b"".join(map(frames.encode_record, records))
            number += 0 if message.control else len(records)

    async def receive(self) -> bytes:
        data, self._data = self._data, b""
        return data

    async def send(self, record: bytes) -> None: ...

    def close(self) -> None: ...


def output(text: str) -> Outputs:
    return Outputs(0, "stdout", [text])


async def test_thousands_of_small_messages_that_come_together_are_taken_in_many_turns_of_the_loop() -> None:
    line, turns = GuestLine(Said([output(str(n)) for n in range(1000)])), 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.ensure_future(others())
    heard: list[str] = []
    while len(heard) < 1000:
        batch = await line.receive()
        assert len(batch) <= BATCH_MAX
        heard += [one.message.lines[0] for one in batch if isinstance(one.message, Outputs)]
    beside.cancel()
    assert heard == [str(n) for n in range(1000)]
    assert turns >= 1000 // BATCH_MAX


class Counted(Flow):
    """Says what it was told, and holds nothing."""

    def __init__(self) -> None:
        super().__init__(Weir(), MachineId("m-flood"))
        self.told: list[str] = []

    async def passed(self, took_seconds: float) -> None:
        assert took_seconds > 0
        self.told.append("some")

    async def before_large(self) -> None:
        self.told.append("a large one comes")

    def passed_large(self, took_seconds: float) -> None:
        assert took_seconds > 0
        self.told.append("a large one")


async def test_a_large_message_is_read_when_there_is_room_for_it_and_what_came_before_it_counts() -> None:
    large, flow = output("x" * LARGE_BYTES), Counted()
    line = GuestLine(Said([output("small"), large, large, output("small")]), flow)
    heard: list[Heard] = []
    while len(heard) < 4:
        heard += await line.receive()
    sizes = [len(one.message.lines[0]) for one in heard if isinstance(one.message, Outputs)]
    assert sizes == [5, LARGE_BYTES, LARGE_BYTES, 5]
    assert flow.told == ["a large one comes", "a large one", "some", "a large one comes", "a large one"]


async def test_files_are_no_flood_nor_are_ends() -> None:
    """Somebody has asked for them, and waits."""
    flow = Counted()
    line = GuestLine(Said([FileTold(1, 1, 0, b"x" * 1000), End(0, "value", 1), FileTold(1, 1, 1, b"x" * 1000)]), flow)
    for _ in range(2):
        with pytest.raises(SandboxLost):
            while True:
                await line.receive()
    assert flow.told == []


async def test_the_time_in_which_a_guest_is_not_listened_to_is_not_held_against_it() -> None:
    weir = Weir()
    weir.ask(MachineId("m-calm"))
    flow = Flow(weir, MachineId("m-flood"))
    line, loop = GuestLine(Said([]), flow), asyncio.get_running_loop()
    answer: asyncio.Future[None] = loop.create_future()
    assert not await line.settled(answer, 0.01)
    held = asyncio.ensure_future(flow.passed(0.5))  # for more than a second
    loop.call_later(0.3, answer.set_result, None)
    assert await line.settled(answer, 0.01)
    held.cancel()
    await asyncio.wait([held])


class Noted(Said):
    """What the guest is told is kept."""

    def __init__(self, messages: Sequence[GuestMessage]) -> None:
        super().__init__(messages)
        self.acknowledged: list[int] = []

    async def send(self, record: bytes) -> None:
        for one in frames.Decoder(frames.RECORD_BYTES_MAX).feed(record):
            if one.kind == Ack.kind:
                told = decode_from_keeper(one.kind, one.payload)
                assert isinstance(told, Ack)
                self.acknowledged.append(told.upto)


async def test_what_is_not_on_the_tape_yet_does_not_count_as_acknowledged_with_what_is() -> None:
    """Or a guest that keeps so much that it stops listening would wait for ever."""
    link = Noted([output("small"), output("x" * ACK_EVERY_WEIGHT)])
    line = GuestLine(link)
    heard = await line.receive()
    await line.acknowledge(heard[0].number)
    while len(heard) < 2:
        heard = [*heard, *await line.receive()]
    await line.send(Interrupt(instruction=0))
    assert link.acknowledged == [heard[0].number]
    await line.acknowledge(heard[1].number)
    assert link.acknowledged == [heard[0].number, heard[1].number], "it is large, and told at once"
