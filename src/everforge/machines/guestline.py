"""The keeper's end of a link: messages instead of bytes, numbers checked, acknowledgements sent when it is cheap.

What was sent to the guest is not kept for a resend: a new keeper learns from `hello` which instruction the guest took last, and says the rest again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from everforge.engine.base import Link
from everforge.wire import frames
from everforge.wire.errors import ProtocolError, SandboxLost
from everforge.wire.messages import Ack, Attach, GuestMessage, Hello, decode_from_guest, encode

DECODE_IN_THREAD_BYTES = 512 * 1024  # JSON of this size takes milliseconds: too long for the event loop
# One at a time in the whole server: what is being read takes many times its length in memory, and guests choose the moment.
_LARGE = ThreadPoolExecutor(1, thread_name_prefix="large-messages")
ACK_EVERY_BYTES = 512 * 1024  # well below what the guest keeps (4 MiB) before it makes the user's writer wait


class Heard(NamedTuple):
    number: int
    message: GuestMessage
    size_bytes: int  # on the link


class GuestLine:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._decoder = frames.Decoder(frames.GUEST_RECORD_BYTES_MAX)
        self._assembler = frames.Assembler()
        self._sent = 0
        self.protocol = 0  # of the guest, once it has said hello
        self._pending: list[Heard] = []
        self._owed: int | None = None  # acknowledgement not yet sent
        self._unacknowledged_bytes = 0
        self._sending = asyncio.Lock()  # a message of several records must not be cut by another
        self._unfinished: set[asyncio.Task[None]] = set()  # messages on their way; they end with the link at the latest

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
        """Messages that have come, at least one. Raises SandboxLost at the end of the link and ProtocolError for anything malformed."""
        if self._pending:
            batch, self._pending = self._pending, []
            return batch
        while True:
            if batch := await self._read():
                return batch

    async def acknowledge(self, number: int, *, now: bool = False) -> None:
        """Everything up to `number` is on the tape. Told with the next message, or when enough has gathered, or at once."""
        self._owed = number
        if now or self._unacknowledged_bytes >= ACK_EVERY_BYTES:
            async with self._sending:
                if ack := self._take_owed_ack():
                    await self._link.send(ack)

    def close(self) -> None:
        self._link.close()

    async def _read(self) -> list[Heard]:
        data = await self._link.receive()
        if not data:
            raise SandboxLost("the guest's side of the link is closed")
        self._unacknowledged_bytes += len(data)
        batch: list[Heard] = []
        for record in self._decoder.feed(data):
            message = self._assembler.add(record)
            if message is not None:
                batch.append(Heard(message.number, await self._decode(message), len(message.body)))
        return batch

    @staticmethod
    async def _decode(message: frames.Message) -> GuestMessage:
        if len(message.body) > DECODE_IN_THREAD_BYTES:
            return await asyncio.get_running_loop().run_in_executor(_LARGE, decode_from_guest, message.kind, message.body)
        return decode_from_guest(message.kind, message.body)

    def _take_owed_ack(self) -> bytes:
        if self._owed is None:
            return b""
        ack, self._owed, self._unacknowledged_bytes = self._control_record(Ack(upto=self._owed)), None, 0
        return ack

    async def send_control(self, message: GuestMessage) -> None:
        """One record, which the guest does not count."""
        async with self._sending:
            await self._link.send(self._control_record(message))

    @staticmethod
    def _control_record(message: GuestMessage) -> bytes:
        (record,) = frames.split(message.kind, encode(message), 0, frames.RECORD_BYTES_MAX)
        return frames.encode_record(record)
