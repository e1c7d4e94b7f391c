"""The keeper's end of a link: messages instead of bytes, numbers checked, acknowledgements sent when it is cheap.

What was sent to the guest is not kept for a resend: a new keeper learns from `hello` which instruction the guest took last, and says the rest again.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import deque
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from everforge.engine.base import Link
from everforge.wire import frames
from everforge.wire.bodies import is_too_heavy
from everforge.wire.errors import ProtocolError, SandboxLost
from everforge.wire.messages import Ack, Attach, Display, GuestMessage, Hello, Outputs, decode_from_guest, encode

from .weir import Flow

LARGE_BYTES, LARGE_WEIGHT_BYTES = 512 * 1024, 2 * 1024 * 1024  # JSON of this size takes milliseconds: too long for the event loop
# One at a time in the whole server: what is being read takes many times its length in memory, and guests choose the moment.
_LARGE = ThreadPoolExecutor(1, thread_name_prefix="large-messages")
# Taken in one turn of the loop: a guest may send thousands of small messages together, or a megabyte of output, and other machines wait.
BATCH_MAX, BATCH_BYTES, BATCH_SECONDS = 16, 64 * 1024, 0.001
FLOODS = frozenset({Outputs.kind, Display.kind})  # what there may be any amount of without anybody's asking: of ends, calls and files there is not
TOOK_FACTOR, TOOK_SECONDS_EACH = 3.0, 40e-6  # what messages take until they are on the tape: of what it takes to read them, and on top of that
HELD_LOOK_SECONDS = 0.05  # between two looks whether a guest is listened to again
ACK_EVERY_WEIGHT = 512 * 1024  # well below what the guest keeps (4 MiB) before it makes the user's writer wait


class Heard(NamedTuple):
    number: int
    message: GuestMessage
    size_bytes: int  # on the link


class GuestLine:
    """With a `flow`, a guest that says too much is not listened to for a while, where others need the server."""

    def __init__(self, link: Link, flow: Flow | None = None) -> None:
        self._link = link
        self._flow = flow
        self._decoder = frames.Decoder(frames.GUEST_RECORD_BYTES_MAX)
        self._assembler = frames.Assembler()
        self._sent = 0
        self.protocol = 0  # of the guest, once it has said hello
        self._pending: list[Heard] = []
        self._records: Iterator[frames.Record] | None = None  # that have come, and are not all taken yet
        self._owed: int | None = None  # acknowledgement not yet sent
        self._weights: deque[tuple[int, int]] = deque()  # of messages that are not on the tape yet: number, and what all up to it weigh together
        self._weight = self._taped_weight = self._acknowledged_weight = 0
        self._took_seconds = 0.0  # of the server, by the messages that were received last
        self._sending = asyncio.Lock()  # a message of several records must not be cut by another
        self._unfinished: set[asyncio.Task[None]] = set()  # messages on their way; they end with the link at the latest

    async def settled(self, future: asyncio.Future[Any], seconds: float) -> bool:
        """Is it done within this time?"""
        with contextlib.suppress(TimeoutError):
            async with self.within(seconds):
                await asyncio.wait([future])
        return future.done()

    @contextlib.asynccontextmanager
    async def within(self, seconds: float) -> AsyncGenerator[None]:
        """Raises TimeoutError when it takes longer. While a flood of what the guest said before is held, its answer is not heard either: that does
        not count."""
        loop = asyncio.get_running_loop()
        began, held_before = loop.time(), self._held_seconds

        def look() -> None:
            nonlocal looking
            left = seconds - (loop.time() - began) + (self._held_seconds - held_before)
            if left <= 0:
                timeout.reschedule(loop.time())
                return
            self.await_answer(left)
            looking = loop.call_later(max(left, HELD_LOOK_SECONDS), look)

        with self.awaited(seconds):
            async with asyncio.timeout(None) as timeout:
                looking = loop.call_later(max(seconds, HELD_LOOK_SECONDS), look)
                try:
                    yield
                finally:
                    looking.cancel()

    @contextlib.contextmanager
    def awaited(self, seconds: float) -> Generator[None]:
        """Somebody waits for what comes behind all that the guest has said, for so long at most."""
        self.await_answer(seconds)
        try:
            yield
        finally:
            if self._flow is not None:
                self._flow.answered()

    def await_answer(self, seconds: float) -> None:
        if self._flow is not None:
            self._flow.await_answer(seconds)

    @property
    def _held_seconds(self) -> float:
        return 0.0 if self._flow is None else self._flow.held_seconds

    def ask(self) -> None:
        """Somebody has asked the machine for something, or was answered just now."""
        if self._flow is not None:
            self._flow.ask()

    @property
    def sent(self) -> int:
        """Number of the last record sent to the guest in this epoch."""
        return self._sent

    @property
    def received(self) -> int:
        """Number of the last record received from the guest in this epoch."""
        return self._assembler.last

    async def attach(self, epoch: int, have: int, deadline_seconds: float) -> Hello:
        """Open an epoch (`have` is 0 then) or go on in one after a reconnect; the guest resends what came after `have`."""
        nonce = secrets.token_bytes(frames.NONCE_BYTES)
        self._decoder = frames.Decoder(frames.GUEST_RECORD_BYTES_MAX, nonce)
        self._assembler = frames.Assembler(have)
        self._records = None
        try:
            async with asyncio.timeout(deadline_seconds):
                await self.send_control(Attach(nonce=nonce.hex(), epoch=epoch, have=have))
                hello = await self._hello()
        except TimeoutError:
            raise SandboxLost(f"the guest did not say hello within {deadline_seconds:g} s") from None
        self.protocol = hello.protocol
        self._sent = hello.received if hello.epoch == epoch else 0
        return hello

    async def _hello(self) -> Hello:
        while True:
            for index, heard in enumerate(batch := await self._read()):
                if not isinstance(heard.message, Hello):
                    raise ProtocolError(f"the guest said {type(heard.message).__name__} ({heard.number}) before hello")
                self._pending = batch[index + 1 :]
                return heard.message

    async def send(self, message: GuestMessage) -> None:
        """Whole or not at all: also when the caller goes away in the middle, the guest gets the rest, as soon as it reads."""
        body = encode(message)
        if len(body) < frames.RECORD_BYTES_MAX // 2:
            await self._send(message.kind, body)  # in one record, which is taken whole
            return
        task = asyncio.get_running_loop().create_task(self._send(message.kind, body))
        self._unfinished.add(task)
        task.add_done_callback(self._finished)
        await asyncio.shield(task)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._unfinished.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may be waiting

    async def _send(self, kind: int, body: bytes) -> None:
        async with self._sending:
            records = frames.split(kind, body, self._sent + 1, frames.RECORD_BYTES_MAX)
            first, *rest = (frames.encode_record(r) for r in records)
            ack = self._take_owed_ack()
            if len(ack) + len(first) <= frames.RECORD_BYTES_MAX:
                await self._link.send(ack + first)  # still one atomic write
            else:
                await self._link.send(ack)
                await self._link.send(first)
            for record in rest:
                await self._link.send(record)
            self._sent = records[-1].number

    async def receive(self) -> Sequence[Heard]:
        """Messages that have come, at least one, once those before are on the tape.

        Raises SandboxLost at the end of the link and ProtocolError for anything malformed.
        """
        if self._flow is not None and self._took_seconds:
            await self._flow.passed(self._took_seconds)
        if self._pending:
            batch, self._pending = self._pending, []
            return batch
        while True:
            if batch := await self._read():
                return batch

    async def acknowledge(self, number: int, *, now: bool = False) -> None:
        """Everything up to `number` is on the tape. Told with the next message, or when enough has gathered, or at once."""
        self._owed = number
        while self._weights and self._weights[0][0] <= number:
            self._taped_weight = self._weights.popleft()[1]
        if now or self._taped_weight - self._acknowledged_weight >= ACK_EVERY_WEIGHT:
            async with self._sending:
                if ack := self._take_owed_ack():
                    await self._link.send(ack)

    def close(self) -> None:
        self._link.close()

    async def _read(self) -> list[Heard]:
        """Some of what has come, or none."""
        if self._records is None:
            data = await self._link.receive()
            if not data:
                raise SandboxLost("the guest's side of the link is closed")
            self._records = self._decoder.feed(data)
        else:
            await asyncio.sleep(0)
        batch: list[Heard] = []
        size_bytes = 0
        began, self._took_seconds = time.thread_time(), 0.0  # not by the clock: on a busy computer everything takes longer, and nobody is to blame
        for record in self._records:
            message = self._assembler.add(record)
            if record.number:
                self._weight += frames.weight(record.payload)
                self._weights.append((record.number, self._weight))
            if message is None:
                continue
            if _is_large(message):
                large = await self._decode_in_thread(message)
                return [*batch, Heard(message.number, large, len(message.body))]
            batch.append(Heard(message.number, decode_from_guest(message.kind, message.body), len(message.body)))
            size_bytes += len(message.body)
            took_seconds = time.thread_time() - began
            if message.kind in FLOODS:
                self._took_seconds = TOOK_FACTOR * took_seconds + TOOK_SECONDS_EACH * len(batch)
            if len(batch) == BATCH_MAX or size_bytes >= BATCH_BYTES or took_seconds >= BATCH_SECONDS:
                return batch
        self._records = None
        return batch

    async def _decode_in_thread(self, message: frames.Message) -> GuestMessage:
        if self._flow is not None:
            await self._flow.before_large()
        decoded, took_seconds = await asyncio.get_running_loop().run_in_executor(_LARGE, _decode_timed, message)
        if self._flow is not None:
            self._flow.passed_large(TOOK_FACTOR * took_seconds)
        return decoded

    def _take_owed_ack(self) -> bytes:
        if self._owed is None:
            return b""
        ack, self._owed, self._acknowledged_weight = self._control_record(Ack(upto=self._owed)), None, self._taped_weight
        return ack

    async def send_control(self, message: GuestMessage) -> None:
        """One record, which the guest does not count."""
        async with self._sending:
            await self._link.send(self._control_record(message))

    @staticmethod
    def _control_record(message: GuestMessage) -> bytes:
        (record,) = frames.split(message.kind, encode(message), 0, frames.RECORD_BYTES_MAX)
        return frames.encode_record(record)


def _is_large(message: frames.Message) -> bool:
    """By its bytes, or by the values that it holds: reading either takes milliseconds."""
    size = len(message.body)
    return size > LARGE_BYTES or (size > LARGE_BYTES // 16 and message.kind != Outputs.kind and is_too_heavy(message.body, LARGE_WEIGHT_BYTES))


def _decode_timed(message: frames.Message) -> tuple[GuestMessage, float]:
    began = time.thread_time()
    return decode_from_guest(message.kind, message.body), time.thread_time() - began
