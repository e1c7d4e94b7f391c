"""The least that can talk to a guest: attach, run, freeze, go. Independent of `machines`, so that the suite tests engines only."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import TypeVar

from everforge.engine.base import Link
from everforge.wire import frames
from everforge.wire.errors import SandboxLost
from everforge.wire.messages import Attach, End, Freeze, Frozen, Go, GuestMessage, Hello, Outputs, Run, Thawed, decode_from_guest, encode

M = TypeVar("M", bound=GuestMessage)
ANSWER_SECONDS = 60.0  # for a slow, shared computer


class Driver:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._decoder = frames.Decoder(frames.GUEST_RECORD_BYTES_MAX)
        self._assembler = frames.Assembler()
        self._sent = 0
        self._waiting: list[GuestMessage] = []
        self._instruction = -1
        self.lines: list[str] = []

    async def attach(self, epoch: int, have: int = 0) -> Hello:
        nonce = secrets.token_bytes(frames.NONCE_BYTES)
        self._decoder = frames.Decoder(frames.GUEST_RECORD_BYTES_MAX, nonce)
        self._assembler = frames.Assembler(have)
        attach = Attach(nonce=nonce.hex(), epoch=epoch, have=have)
        (record,) = frames.split(attach.kind, encode(attach), 0, frames.RECORD_BYTES_MAX)
        await self._link.send(frames.encode_record(record))
        hello = await self.expect(Hello)
        same = hello.epoch == epoch
        self._sent = hello.received if same else 0
        self._instruction = hello.last if same and hello.last is not None else -1
        return hello

    async def go(self) -> None:
        await self._send(Go(time_ns=time.time_ns()))
        await self.expect(Thawed)

    async def freeze(self) -> None:
        await self._send(Freeze(token=1))
        await self.expect(Frozen)

    async def begin(self, code: str) -> None:
        self._instruction += 1
        await self._send(Run(instruction=self._instruction, code=code))

    async def run(self, code: str) -> End:
        await self.begin(code)
        return await self.expect(End)

    async def value(self, code: str) -> str | None:
        end = await self.run(code)
        assert end.end == "value", end
        return end.value

    @property
    def received(self) -> int:
        return self._assembler.last

    async def expect(self, kind: type[M]) -> M:
        """The next message of this kind; output on the way is collected in `lines`."""
        async with asyncio.timeout(ANSWER_SECONDS):
            while True:
                while self._waiting:
                    message = self._waiting.pop(0)
                    if isinstance(message, Outputs):
                        self.lines += message.lines
                    if isinstance(message, kind):
                        return message
                await self._read()

    async def _read(self) -> None:
        data = await self._link.receive()
        if not data:
            raise SandboxLost("the guest's side is closed")
        for record in self._decoder.feed(data):
            message = self._assembler.add(record)
            if message is not None:
                self._waiting.append(decode_from_guest(message.kind, message.body))

    async def _send(self, message: GuestMessage) -> None:
        await self.say(message.kind, encode(message))

    async def say(self, kind: int, body: bytes) -> None:
        """Also what is in no table yet."""
        records = frames.split(kind, body, self._sent + 1, frames.RECORD_BYTES_MAX)
        for record in records:
            await self._link.send(frames.encode_record(record))
        self._sent = records[-1].number
