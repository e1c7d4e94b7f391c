"""The warden's socket: who may come in, one holder at a time, requests in and replies, descriptors and events out."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from everforge.wire.errors import DataFolderBusy, EverforgeError, InvalidInput, ProtocolError

from . import namespaces, verbs
from .channel import Channel
from .sandboxes import Sandboxes

log = logging.getLogger(__name__)

HANDOVER_SECONDS = 10.0  # how long a newcomer waits for an old holder that is about to end
REFUSE_SECONDS = 1.0
ACCEPT_PAUSE_SECONDS = 0.2
REQUESTS_MAX = 1000  # of one holder at once
PAGE = 200  # sandboxes in one answer of `list`
_CREDENTIALS = struct.Struct("3i")

Answer = tuple[dict[str, Any], tuple[int, ...]]


class Holder:
    def __init__(self, channel: Channel, pid: int, pidfd: int) -> None:
        self.channel = channel
        self.pid = pid
        self.pidfd = pidfd
        self.released = asyncio.Event()  # it let go or ended
        self.finished = asyncio.Event()  # and what waited for it in pools is gone

    def release(self) -> None:
        """Wakes whoever listens to it, who then closes the channel."""
        if not self.released.is_set():
            self.released.set()
            asyncio.get_running_loop().remove_reader(self.pidfd)
            os.close(self.pidfd)
            with suppress(OSError):
                self.channel.socket.shutdown(socket.SHUT_RDWR)


class Door:
    def __init__(self, listener: socket.socket, facts: dict[str, str], *, rootless: bool) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._facts = facts
        self._namespaces = namespaces.open_own() if rootless else []
        self._holder: Holder | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._arriving = asyncio.Lock()
        self.sandboxes: Sandboxes | None = None  # set by whoever made both
        self.changed = asyncio.Event()  # a holder came or went

    @property
    def is_held(self) -> bool:
        return self._holder is not None or self._arriving.locked()

    def report(self, id: str, how: str, detail: str) -> None:
        """Tell the holder, if there is one, that a sandbox is no more."""
        if self._holder is not None:
            self._own(self._send(self._holder, {"event": "ended", "id": id, "how": how, "detail": detail}))
        self.changed.set()

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(self._listener)
            except OSError as e:  # no descriptor is free: whoever comes waits in the queue until one is
                log.warning("nobody can come in now: %s", e)
                await asyncio.sleep(ACCEPT_PAUSE_SECONDS)
                continue
            self._own(self._meet(sock))

    def _own(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- holders -----------------------------------------------------------------------------------------------------------------------

    async def _meet(self, sock: socket.socket) -> None:
        try:
            holder = _recognise(sock)
        except OSError as e:
            log.warning("a process was turned away: %s", e)
            sock.close()
            return
        try:
            asyncio.get_running_loop().add_reader(holder.pidfd, holder.release)
            async with self._arriving:
                if not await self._make_room(holder):
                    return
                self._holder = holder
            await self._listen(holder)
        finally:
            holder.release()
            holder.channel.close()

    async def _make_room(self, newcomer: Holder) -> bool:
        """Two readers of one pipe would split its bytes: so the old holder must have let go, or have ended."""
        old = self._holder
        if old is not None:
            try:
                async with asyncio.timeout(HANDOVER_SECONDS):
                    await old.finished.wait()
            except TimeoutError:
                await self._turn_away(newcomer, DataFolderBusy(f"process {old.pid} holds the sandboxes of this data folder"))
                return False
        return not newcomer.released.is_set()

    async def _turn_away(self, newcomer: Holder, why: EverforgeError) -> None:
        """Its first request is taken off the socket: closing one with something unread in it would drop our answer."""
        try:
            async with asyncio.timeout(REFUSE_SECONDS):
                packet = await newcomer.channel.receive()
        except (TimeoutError, ProtocolError):
            packet = None
        for number in packet[1] if packet is not None else ():
            os.close(number)
        await self._send(newcomer, {"error": {"code": why.code, "message": why.message}})

    async def _listen(self, holder: Holder) -> None:
        assert self.sandboxes is not None
        slots = asyncio.Semaphore(REQUESTS_MAX)
        try:
            while not holder.released.is_set():
                packet = await holder.channel.receive()
                if packet is None:
                    break
                await slots.acquire()
                self._own(self._answer(holder, *packet, slots))
        except (ProtocolError, OSError) as e:
            log.warning("process %d was let go: %s", holder.pid, e)
        finally:
            holder.release()
            holder.channel.close()
            await self.sandboxes.destroy_pooled()
            self._holder = None
            holder.finished.set()
            self.changed.set()

    @staticmethod
    async def _send(holder: Holder, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> None:
        try:
            await holder.channel.send(message, descriptors)
        except (OSError, ProtocolError):
            pass  # it is gone; `_listen` sees that too

    # --- requests ----------------------------------------------------------------------------------------------------------------------

    async def _answer(self, holder: Holder, message: dict[str, Any], descriptors: list[int], slots: asyncio.Semaphore) -> None:
        seq = message.get("seq")
        try:
            verb = verbs.decode(message)
            if len(descriptors) != verb.descriptors:
                raise ProtocolError(f"the verb {verb.name} takes {verb.descriptors} descriptors")
            found, to_send = await self._do(verb, descriptors)
            descriptors = []  # the sandbox's own now
            await self._send(holder, {"seq": seq, "ok": found}, to_send)
        except EverforgeError as e:
            await self._send(holder, {"seq": seq, "error": {"code": e.code, "message": e.message}})
        except Exception as e:
            log.exception("a request failed")
            await self._send(holder, {"seq": seq, "error": {"code": "MachineFailed", "message": f"the warden failed: {e!r}"[:1000]}})
        finally:
            for number in descriptors:
                os.close(number)
            slots.release()

    async def _do(self, verb: verbs.Verb, given: list[int]) -> Answer:
        sandboxes = self.sandboxes
        assert sandboxes is not None
        match verb:
            case verbs.Hello():
                return self._hello(verb)
            case verbs.Start():
                return {}, (await sandboxes.start(verb)).stdio.all
            case verbs.Create():
                return {}, (await sandboxes.create(verb)).stdio.all
            case verbs.Restore():
                return {}, (await sandboxes.restore(verb)).stdio.all
            case verbs.Descriptors():
                held = sandboxes.get(verb.id)
                return held.describe(), held.stdio.all
            case verbs.Adopt():
                sandboxes.adopt(verb, given)
            case verbs.Save():
                await sandboxes.save(verb)
            case verbs.Claim():
                sandboxes.claim(verb)
            case verbs.Destroy():
                await sandboxes.destroy(verb.id)
            case verbs.Usage():
                return {"bytes": sandboxes.usage_bytes(sandboxes.get(verb.id))}, ()
            case verbs.Sweep():
                return {"swept": await sandboxes.sweep()}, ()
            case verbs.List():
                page = [held for held in sandboxes.all() if held.id > verb.after and held.state != "ended"]
                return {"sandboxes": [held.describe() for held in page[:PAGE]], "more": len(page) > PAGE}, ()
            case _:
                raise ProtocolError(f"the verb {verb.name} is not served")
        return {}, ()

    def _hello(self, verb: verbs.Hello) -> Answer:
        if verb.protocol != verbs.PROTOCOL:
            raise InvalidInput(f"this warden speaks protocol {verbs.PROTOCOL}, not {verb.protocol}: it must end first")
        return {"protocol": verbs.PROTOCOL, "pid": os.getpid(), "facts": self._facts}, tuple(self._namespaces)


def _recognise(sock: socket.socket) -> Holder:
    """Raises OSError when it is another user's process, or gone, or when there is no descriptor to watch it by."""
    pid, uid, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    if uid != os.geteuid():
        raise PermissionError(f"process {pid} is of user {uid}")
    return Holder(Channel(sock), pid, os.pidfd_open(pid))
