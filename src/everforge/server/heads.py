"""The head of an answer goes out with the beginning of its body: handing bytes to the network takes far longer than making them."""

from __future__ import annotations

import asyncio
from typing import Any

CONTINUE = b"HTTP/1.1 100 "
TOGETHER_BYTES_MAX = 64 * 1024  # a longer body is not copied for the sake of its head


class HeadWithBody:
    """In place of a connection's transport, for one answer that has a body."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = None
        self._is_begun = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self._is_begun:
            self._transport.write(data)
        elif self._head is None:
            if data.startswith(CONTINUE):  # an answer of its own, before
                self._transport.write(data)
            else:
                self._head = data
        else:
            self._begin(data)

    def close(self) -> None:
        if self._head is not None and not self._is_begun:
            self._begin(b"")
        self._transport.close()

    def _begin(self, body: bytes) -> None:
        assert self._head is not None
        self._is_begun = True
        if len(body) > TOGETHER_BYTES_MAX:
            self._transport.write(self._head)
            self._transport.write(body)
        else:
            self._transport.write(self._head + body)
