"""A connection to a host that has secrets: TLS is opened here, requests get their secrets, answers lose them, and TLS goes on to the real host."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Literal

import h11

from .attempts import PATH_CHARACTERS_MAX, Attempt
from .bytestream import ByteStream, Cut
from .exchange import exchange
from .http import Headers, HttpSide, Malformed, check_framing, header, is_websocket, onward
from .secrets import BODY_BYTES_MAX, Scrubber, Secret, Substitution, TooLong
from .targets import host_and_port
from .turns import Turns

# Of a request, written by the door itself or not at all: a compressed answer, or one in frames of a WebSocket that are, could not be read here.
OURS = frozenset({b"accept-encoding", b"host", b"sec-websocket-extensions"})
FRAMING = frozenset({b"content-length", b"transfer-encoding"})  # of an answer: numbers, and one word
VALUES_MAX = 64  # of one connection, in the course of which they may be given anew: all of them are looked for in each of its answers
HELD_SECONDS = 0.05  # of a pause in another protocol than HTTP, before what was held back is told: nobody here knows where its messages end
Went = Literal["again", "end", "switched"]  # another request may follow; it was the last; it is not HTTP any more


class Brokered:
    """`inside` is TLS with the program, `outside` TLS with the real host."""

    def __init__(
        self,
        inside: ByteStream,
        outside: ByteStream,
        attempt: Attempt,
        secrets: Callable[[], Sequence[Secret]],
        turns: Turns,
        bodies: asyncio.Semaphore,
    ) -> None:
        self._inside = HttpSide(inside, h11.SERVER, turns)
        self._outside = HttpSide(outside, h11.CLIENT, turns)
        self._attempt = attempt
        self._secrets = secrets
        self._bodies = bodies
        self._values: set[bytes] = set()  # what must not come back, in any answer of this connection
        self._afterwards = Scrubber(())  # of what is said when it is not HTTP any more
        self.went: Went = "end"

    async def next_request(self, seconds: float) -> h11.Request | None:
        """None when there are no more. Raises Malformed, Cut."""
        async with asyncio.timeout(seconds):
            found = await self._inside.next()
        return found if isinstance(found, h11.Request) else None

    def attempt(self, request: h11.Request) -> Attempt:
        """Each request is on the record by itself."""
        path = request.target.decode("ascii", "replace").partition("?")[0][:PATH_CHARACTERS_MAX]
        return replace(self._attempt, method=request.method.decode("ascii"), path=path, sent_bytes=0, received_bytes=0, began_at=time.time())

    async def serve(self, request: h11.Request, attempt: Attempt) -> None:
        """What becomes of the connection then is in `went`. Raises Malformed, Cut."""
        self._check(request)
        secrets = self._secrets()  # as they are now
        if not secrets:
            raise Cut("this host has no secrets any more")
        substitution = Substitution([secret for secret in secrets if secret.is_for(request.method)])
        upgrade = is_websocket(request.headers)  # a wish for any other protocol stays here, as a host may do that does not know it
        holds_body = substitution.wants_body and not upgrade
        async with self._bodies if holds_body else nullcontext():
            sent, body = await self._with_secrets(request, substitution, upgrade=upgrade, holds_body=holds_body)
            attempt.secrets = tuple(substitution.used)
            self._values |= {secret.value for secret in secrets}
            if len(self._values) > VALUES_MAX:
                raise Malformed(f"there were more than {VALUES_MAX} values of secrets in this connection: open another")
            switched = await exchange(self._inside, self._outside, sent, body, _Answer(Scrubber(self._values)))
        self.went = "switched" if switched else "again" if self._again() else "end"

    async def _with_secrets(
        self, request: h11.Request, substitution: Substitution, *, upgrade: bool, holds_body: bool
    ) -> tuple[h11.Request, bytes | None]:
        """As it goes to the host, with its body where that was to be read. Raises Malformed, Cut."""
        # The host is written anew: another spelling of it may be another server to the one that is asked. What comes back must be readable here.
        kept = [pair for pair in onward(request.headers, upgrade=upgrade) if pair[0] not in OURS]
        body: bytes | None = None
        try:
            headers = [(b"host", self._host), *substitution.headers(kept), (b"accept-encoding", b"identity")]
            target = substitution.target(request.target)
            if holds_body:
                body, headers = await self._read_body(substitution, headers)
        except TooLong as e:
            raise Malformed(str(e)) from None
        try:
            return h11.Request(method=request.method, target=target, headers=headers), body
        except h11.LocalProtocolError:  # its own words would give the value away
            raise Malformed("with its secrets in it, this is no HTTP request any more") from None

    async def refuse(self, why: str) -> None:
        """A request that was not passed on."""
        if self._inside.state.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = f"{why}\n".encode()
            headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
            await self._inside.send(h11.Response(status_code=400, headers=headers, reason=b"Bad Request"))
            await self._inside.send(h11.Data(data=body))
            await self._inside.send(h11.EndOfMessage())

    async def pass_what_is_left(self) -> None:
        """Of another protocol, that came behind the last of HTTP."""
        self._afterwards = Scrubber(self._values)
        if self._inside.left:
            await self._outside.stream.write(self._inside.left)
        if told := self._afterwards.piece(self._outside.left):
            await self._inside.stream.write(told)

    def scrubbed(self, outside: ByteStream) -> ByteStream:
        """What another protocol than HTTP says back."""
        return _ScrubbedStream(outside, self._afterwards)

    @property
    def _host(self) -> bytes:
        host = f"[{self._attempt.host}]" if ":" in self._attempt.host else self._attempt.host
        return (host if self._attempt.port == 443 else f"{host}:{self._attempt.port}").encode("ascii")

    async def _read_body(self, substitution: Substitution, headers: Headers) -> tuple[bytes, list[tuple[bytes, bytes]]]:
        """Whole, since its length changes with the secrets that stand in it."""
        inside = self._inside
        if inside.state.they_are_waiting_for_100_continue:
            await inside.send(h11.InformationalResponse(status_code=100, headers=[]))
        read = bytearray()
        while not isinstance(event := await inside.next(), h11.EndOfMessage):
            if not isinstance(event, h11.Data):
                raise Cut("the machine has cut its request")
            read += event.data
            if len(read) > BODY_BYTES_MAX:
                raise Malformed(f"a body in which a secret may stand has {BODY_BYTES_MAX} bytes at most")
        body = substitution.body(bytes(read))
        had_body = any(name in (b"content-length", b"transfer-encoding") for name, _ in headers)
        kept = [pair for pair in headers if pair[0] not in (b"content-length", b"transfer-encoding", b"expect")]
        return body, [*kept, (b"content-length", b"%d" % len(body))] if had_body else kept

    def _again(self) -> bool:
        sides = (self._inside.state, self._outside.state)
        if any(state.our_state is not h11.DONE or state.their_state is not h11.DONE for state in sides):
            return False
        for state in sides:
            state.start_next_cycle()
        return True

    def _check(self, request: h11.Request) -> None:
        """A secret for one host must not come to another that shares its address."""
        check_framing(request.headers)
        said = (header(request.headers, b"host") or b"").decode("ascii", "replace")
        if host_and_port(said, 443) != (self._attempt.host, self._attempt.port):
            raise Malformed(f"the header Host says {said[:100]!r} in a connection to {self._attempt.host}")
        if not request.target.startswith(b"/") and request.target != b"*":
            raise Malformed("a request to a server names a path")


class _Answer:
    """A Passing. What is held back of a body is told when more comes, or when it ends, and never because of a pause: how long those are is in the
    hands of the machine, too, which may read as slowly as it likes."""

    def __init__(self, scrubber: Scrubber) -> None:
        self._scrubber = scrubber

    def changed(self, event: Any) -> Sequence[Any]:
        if isinstance(event, h11.Response | h11.InformationalResponse):
            headers = [
                (name, value) if name in FRAMING else (self._scrubber.name(name), self._scrubber.whole(value)) for name, value in event.headers
            ]
            return [type(event)(status_code=event.status_code, headers=headers, reason=self._scrubber.whole(event.reason))]
        if isinstance(event, h11.Data):
            told = self._scrubber.piece(bytes(event.data))
            return [h11.Data(data=told)] if told else []
        return [h11.Data(data=self._scrubber.rest()), event] if self._scrubber.holds else [event]


class _ScrubbedStream:
    """A ByteStream."""

    def __init__(self, stream: ByteStream, scrubber: Scrubber) -> None:
        self._stream = stream
        self._scrubber = scrubber
        self._coming: asyncio.Future[bytes] | None = None

    async def read(self) -> bytes:
        """What was held back of the words before is told when there is a pause."""
        try:
            while True:
                coming = self._coming = self._coming or asyncio.ensure_future(self._stream.read())
                if self._scrubber.holds and not (await asyncio.wait([coming], timeout=HELD_SECONDS))[0]:
                    return self._scrubber.rest()
                data, self._coming = await coming, None
                if not data:
                    return self._scrubber.rest()
                if told := self._scrubber.piece(data):
                    return told
        except BaseException:
            if self._coming is not None:
                self._coming.cancel()
            raise

    async def write(self, data: bytes) -> None:
        await self._stream.write(data)

    async def end(self) -> None:
        await self._stream.end()

    def cut(self) -> None:
        self._stream.cut()
