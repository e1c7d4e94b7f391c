"""TLS over any stream of bytes, as its server or its client."""

from __future__ import annotations

import ssl

from .bytestream import READ_BYTES, ByteStream, Cut


class TlsStream:
    """A ByteStream. With the `name` of a server it is its client."""

    def __init__(self, stream: ByteStream, context: ssl.SSLContext, name: str | None = None) -> None:
        self._stream = stream
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=name is None, server_hostname=name)

    async def begin(self, said: bytes = b"") -> None:
        """`said` is what has come already. Raises Cut, also when one side does not trust the other."""
        self._incoming.write(said)
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                await self._fill()
            except ssl.SSLError as e:
                await self._flush()
                raise Cut(f"TLS failed: {getattr(e, 'verify_message', '') or e.reason or e}") from e
            else:
                await self._flush()
                return

    async def read(self) -> bytes:
        while True:
            try:
                return self._tls.read(READ_BYTES)
            except ssl.SSLWantReadError:
                await self._flush()
                await self._fill()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):  # many clients just hang up; whether something is missing, HTTP tells
                return b""
            except ssl.SSLError as e:
                raise Cut(str(e)) from e

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[self._tls.write(view) :]
                await self._flush()
        except ssl.SSLError as e:
            raise Cut(str(e)) from e

    async def end(self) -> None:
        try:
            self._tls.unwrap()
        except ssl.SSLError:
            pass  # the other side need not answer
        await self._flush()
        await self._stream.end()

    def cut(self) -> None:
        self._stream.cut()

    async def _fill(self) -> None:
        data = await self._stream.read()
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    async def _flush(self) -> None:
        if data := self._outgoing.read():
            await self._stream.write(data)
