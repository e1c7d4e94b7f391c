"""Messages with descriptors between a warden and its holder: one JSON object per packet of a Unix SEQPACKET socket."""

from __future__ import annotations

import array
import asyncio
import json
import os
import socket
from collections.abc import Sequence
from typing import Any, cast

from everforge.wire.errors import ProtocolError

PACKET_BYTES_MAX = 64 * 1024  # below the default socket buffer, so that one packet always fits
DESCRIPTORS_MAX = 8
_SPACE = socket.CMSG_SPACE(DESCRIPTORS_MAX * array.array("i").itemsize)

Packet = tuple[dict[str, Any], list[int]]


class Channel:
    """One reader; any number of writers, whose packets stay whole and in order."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._sending = asyncio.Lock()

    @property
    def socket(self) -> socket.socket:
        return self._sock

    async def receive(self) -> Packet | None:
        """The next packet; None when the other side is gone. Raises ProtocolError for anything else than a JSON object."""
        while True:
            try:
                data, ancillary, flags, _ = self._sock.recvmsg(PACKET_BYTES_MAX, _SPACE, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                await _until_ready(self._sock, writing=False)
                continue
            except OSError:
                return None
            break
        descriptors = _descriptors(ancillary)
        if not data:
            _close(descriptors)
            return None
        try:
            if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
                raise ProtocolError(f"a packet is over the limit of {PACKET_BYTES_MAX} bytes or {DESCRIPTORS_MAX} descriptors")
            return _object(data), descriptors
        except ProtocolError:
            _close(descriptors)
            raise

    async def send(self, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        """Raises ConnectionError when the other side is gone."""
        data = json.dumps(message, separators=(",", ":")).encode()
        if len(data) > PACKET_BYTES_MAX:
            raise ProtocolError(f"a message of {len(data)} bytes is over the limit of {PACKET_BYTES_MAX}")
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        async with self._sending:
            while True:
                try:
                    self._sock.sendmsg([data], ancillary)
                    return
                except BlockingIOError:
                    await _until_ready(self._sock, writing=True)
                except ConnectionError:
                    raise
                except OSError as e:
                    raise ConnectionError(str(e)) from e

    def close(self) -> None:
        self._sock.close()


async def _until_ready(sock: socket.socket, *, writing: bool) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    number = sock.fileno()
    if number < 0:
        raise ConnectionResetError("the channel was closed")
    (loop.add_writer if writing else loop.add_reader)(number, lambda: ready.done() or ready.set_result(None))
    try:
        await ready
    finally:
        (loop.remove_writer if writing else loop.remove_reader)(number)


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as e:
        raise ProtocolError("a packet is not JSON") from e
    if not isinstance(found, dict):
        raise ProtocolError("a packet is not a JSON object")
    return cast(dict[str, Any], found)


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    found = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return list(found)


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
