"""The server's side of a warden: finds or starts it, asks it, and starts another when it was killed."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everforge.engine.warden import verbs
from everforge.engine.warden.channel import Channel
from everforge.engine.warden.folders import Folders
from everforge.wire import errors
from everforge.wire.errors import DataFolderBusy, EngineUnfit, EverforgeError, ProtocolError, SandboxLost

START_SECONDS = 20.0
RETRY_SECONDS = 0.05
ATTEMPTS = 5  # to replace a warden, before everything it held is given up
PAUSE_SECONDS = 0.2
HELLO_SECONDS = 20.0  # longer than a warden waits for its old holder to end

log = logging.getLogger(__name__)

Answer = tuple[dict[str, Any], list[int]]


class WardenGone(SandboxLost):
    """The warden ended while it was asked; what it was doing may or may not have happened."""


@dataclass(frozen=True, slots=True)
class Places:
    folders: Folders
    images: Path
    snapshots: Path
    linger_seconds: float


class Client:
    """`ended` is told of every sandbox that is no more; `replaced` when another warden had to be started, before anything else is asked of it; `lost`
    when none can be had any more."""

    def __init__(
        self,
        places: Places,
        ended: Callable[[str, str, str], None],
        replaced: Callable[[Client], Awaitable[None]],
        lost: Callable[[str], None],
    ) -> None:
        self._places = places
        self._ended = ended
        self._replaced = replaced
        self._lost = lost
        self._channel: Channel | None = None
        self._asked: dict[int, asyncio.Future[Answer]] = {}
        self._numbers = itertools.count(1)
        self._namespaces: list[int] = []  # of the warden; a successor must stand in the same ones
        self._up = asyncio.Event()
        self._failure: EverforgeError | None = None
        self._reader: asyncio.Task[None] | None = None
        self.pid = 0
        self.facts: dict[str, str] = {}

    async def open(self) -> None:
        await self._connect()
        self._up.set()
        self._reader = asyncio.create_task(self._read(), name="warden")

    async def ask(self, verb: verbs.Verb, descriptors: Sequence[int] = ()) -> Answer:
        """Raises what the warden raised, or WardenGone. Waits while another warden is being started."""
        while True:
            await self._up.wait()
            try:
                return await self.ask_now(verb, descriptors)
            except WardenGone:
                if not verb.repeatable:
                    raise
                await asyncio.sleep(RETRY_SECONDS)

    async def close(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        self._failure = SandboxLost("the engine is closed")
        self._fail(self._failure)
        self._up.set()
        self._drop_channel()
        for number in self._namespaces:
            os.close(number)
        self._namespaces = []

    # --- asking ------------------------------------------------------------------------------------------------------------------------

    async def ask_now(self, verb: verbs.Verb, descriptors: Sequence[int] = ()) -> Answer:
        """For `replaced` only: the new warden is not open for others yet."""
        if self._failure is not None:
            raise self._failure
        if self._channel is None:
            raise WardenGone("the warden is gone")
        number = next(self._numbers)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        try:
            await self._channel.send({"seq": number, **verbs.encode(verb)}, descriptors)
            return await answer
        except ConnectionError as e:
            raise WardenGone("the warden is gone") from e
        finally:
            # An answer that comes after the asker was cancelled finds nobody, and its descriptors are closed.
            self._asked.pop(number, None)

    def _take(self, message: dict[str, Any], descriptors: list[int]) -> None:
        if message.get("event") == "ended":
            self._ended(str(message.get("id")), str(message.get("how")), str(message.get("detail")))
        answer = self._asked.pop(int(message.get("seq") or 0), None)
        if answer is None or answer.done():
            for number in descriptors:
                os.close(number)
        elif "error" in message:
            answer.set_exception(_error(message["error"]))
        else:
            answer.set_result((message["ok"], descriptors))

    def _fail(self, error: EverforgeError) -> None:
        asked, self._asked = self._asked, {}
        for answer in asked.values():
            if not answer.done():
                answer.set_exception(error)

    # --- the warden's life -------------------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        while True:
            await self._read_until_gone()
            self._up.clear()
            for attempt in range(ATTEMPTS):
                self._fail(WardenGone("the warden ended"))
                self._drop_channel()
                try:
                    await self._replace()
                    break
                except (EverforgeError, OSError) as e:  # the system may lack processes or descriptors for a moment
                    log.warning("no new warden yet: %s", e)
                    if attempt == ATTEMPTS - 1:
                        self._failure = SandboxLost(f"the warden ended, and no other could be started: {e}")
                    await asyncio.sleep(PAUSE_SECONDS)
            self._up.set()
            if self._failure is not None:
                self._lost(self._failure.message)
                return

    async def _replace(self) -> None:
        await self._connect()
        reading = asyncio.create_task(self._read_until_gone())
        try:
            await self._replaced(self)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read_until_gone(self) -> None:
        while self._channel is not None:
            try:
                packet = await self._channel.receive()
            except ProtocolError:
                return
            if packet is None:
                self._fail(WardenGone("the warden ended"))
                return
            self._take(*packet)

    def _drop_channel(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    async def _connect(self) -> None:
        """To the warden of the data folder, started if there is none, and introduce ourselves."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + START_SECONDS
        while True:
            self._channel = channel = await self._reach(deadline)
            try:
                return await self._introduce(channel)
            except WardenGone:
                if clock() >= deadline:
                    raise
                await asyncio.sleep(RETRY_SECONDS)  # it was about to end, and we stood in its queue still

    async def _reach(self, deadline: float) -> Channel:
        try:
            async with asyncio.timeout_at(deadline):
                while (channel := self._try_connect()) is None:
                    if not await self._start():
                        await asyncio.sleep(RETRY_SECONDS)  # another one was there: it listens soon, or is about to end
                return channel
        except TimeoutError:
            raise EngineUnfit(f"no warden answers at {self._places.folders.socket}") from None

    def _try_connect(self) -> Channel | None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            sock.connect(str(self._places.folders.socket))
        except OSError:
            sock.close()
            return None
        return Channel(sock)

    async def _introduce(self, channel: Channel) -> None:
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                await channel.send({"seq": 0, **verbs.encode(verbs.Hello(protocol=verbs.PROTOCOL))})
                packet = await channel.receive()
        except (TimeoutError, ConnectionError):
            packet = None
        if packet is None:
            self._drop_channel()
            raise WardenGone("the warden did not answer")
        message, descriptors = packet
        if "error" in message:
            self._drop_channel()
            raise _error(message["error"])
        for number in self._namespaces:
            os.close(number)
        self._namespaces = descriptors
        if other := self._other_place(message["ok"]["facts"]):
            self._drop_channel()
            raise EngineUnfit(
                f"{other}: give the old setting again, or wait until it ends, {self._places.linger_seconds:g} s after its last sandbox did"
            )
        self.pid, self.facts = int(message["ok"]["pid"]), dict(message["ok"]["facts"])

    def _other_place(self, facts: dict[str, str]) -> str:
        """A warden keeps to the folders that it was started with, and lives on while it holds sandboxes."""
        places = self._places
        for name, here in (("data", places.folders.data), ("images", places.images), ("snapshots", places.snapshots)):
            if facts.get(name, str(here)) != str(here):
                return f"the warden that keeps these sandboxes was started for {name} in {facts[name]}, not in {here}"
        return ""

    async def _start(self) -> bool:
        """False when there is one already."""
        places = self._places
        options = ["--data", places.folders.data, "--images", places.images, "--snapshots", places.snapshots]
        options += ["--linger-seconds", str(places.linger_seconds)]
        if self._namespaces:
            options += ["--namespaces", *map(str, self._namespaces)]
        command = [sys.executable, "-I", "-m", "everforge.engine.warden", *map(str, options)]
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, pass_fds=self._namespaces
        )
        complaint = (await process.communicate())[1]
        if process.returncode not in (0, verbs.BUSY):
            raise EngineUnfit(complaint.decode(errors="replace").strip()[-600:] or f"the warden ended with status {process.returncode}")
        return process.returncode == 0


def _error(told: dict[str, Any]) -> EverforgeError:
    code, message = str(told.get("code")), str(told.get("message"))
    cls = getattr(errors, code, None)
    if isinstance(cls, type) and issubclass(cls, EverforgeError):
        return cls(message)
    return DataFolderBusy(message) if code == "busy" else errors.MachineFailed(message)
