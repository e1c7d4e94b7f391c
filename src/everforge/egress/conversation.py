"""What a program in a machine says to the door, from its first byte: HTTP through a proxy, CONNECT, or SOCKS5."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import h11

from . import socks
from .attempts import Attempt
from .broker import Brokered
from .bytestream import ByteStream, Cut, HungUp, Relay, Stillness, together
from .exchange import exchange
from .hello import NotTls
from .http import HttpSide, Malformed, onward
from .limits import EgressLimits, OverLimit
from .metered import Metered
from .opening import Opening
from .outside import Unreachable
from .policy import Grant
from .rules import normal_host
from .secrets import Secret
from .targets import SHOWN_CHARACTERS_MAX, Nonsense, Plain, authority, plain_target, tunnel_target
from .tls import TlsStream
from .turns import Turns

REASON_CHARACTERS_MAX = 400
PART_SECONDS = 5.0
AGENT = b"everforge-egress"
UNREADABLE = "(unreadable)"  # in place of a host
Accept = Callable[[], Awaitable[bytes]]  # tells the program that it is connected, and gives what it has sent ahead


class Refused(Exception):
    """By policy or address: a sentence that says what refused it and how it could be allowed."""


_STATUS: dict[type[Exception], int] = {Refused: 403, OverLimit: 429, Unreachable: 502}


class Ways(Protocol):
    """What a conversation may ask of its door."""

    @property
    def limits(self) -> EgressLimits: ...

    def describe(self) -> str: ...

    @property
    def turns(self) -> Turns:
        """For each piece of work for which no byte need come from outside of this process."""
        ...

    @property
    def bodies(self) -> asyncio.Semaphore:
        """Held while a whole body is."""
        ...

    async def begin_attempt(self, attempt: Attempt) -> Grant:
        """Raises Refused, OverLimit; on the record either way."""
        ...

    def secrets(self, attempt: Attempt) -> Sequence[Secret]:
        """Those for the host that it goes to."""
        ...

    def authority(self, host: str) -> ssl.SSLContext:
        """To be that host in the machine's eyes."""
        ...

    async def connect(self, attempt: Attempt, grant: Grant, *, tls: bool = False) -> ByteStream:
        """Raises Refused, Unreachable."""
        ...

    def note(self, attempt: Attempt) -> None:
        """One more on the record, within a connection that was allowed."""
        ...

    async def refuse(self, attempt: Attempt, why: str) -> None:
        """Before any policy is asked; it is over, and on the record. Raises OverLimit."""
        ...

    def end(self, attempt: Attempt) -> None: ...

    async def sent(self, attempt: Attempt, count: int) -> None: ...

    async def received(self, attempt: Attempt, count: int) -> None: ...


class Conversation:
    def __init__(self, stream: ByteStream, ways: Ways) -> None:
        self._stream = stream
        self._ways = ways

    async def run(self) -> None:
        """Until its end; whatever goes wrong is told to the program, or cuts it."""
        try:
            async with asyncio.timeout(self._ways.limits.head_seconds):
                first = await self._stream.read()
            if first[:1] == socks.VERSION:
                await self._socks(first)
            elif first:
                await self._http(first)
            await self._part()
        except (Cut, TimeoutError, Malformed, OverLimit):
            pass
        finally:
            self._stream.cut()

    async def _part(self) -> None:
        """What was said last must arrive: the program is given time to hear it and to hang up."""
        await self._stream.end()
        async with asyncio.timeout(PART_SECONDS):
            while await self._stream.read():
                pass

    # --- HTTP ----------------------------------------------------------------------------------------------------------------------------

    async def _http(self, first: bytes) -> None:
        inside = HttpSide(self._stream, h11.SERVER, self._ways.turns)
        inside.push(first)
        while True:
            try:
                async with asyncio.timeout(self._ways.limits.head_seconds):
                    request = await inside.next()
            except Malformed as e:
                why = f"not a request that a proxy understands: {e}"
                await self._ways.refuse(Attempt(UNREADABLE, 0, "http"), why)
                await answer(inside, 400, why)
                return
            if not isinstance(request, h11.Request):
                return
            if request.method == b"CONNECT":
                await self._connect(inside, request)
                return
            await self._pass_on(inside, request)
            if inside.state.our_state is not h11.DONE or inside.state.their_state is not h11.DONE:
                return
            inside.state.start_next_cycle()

    async def _pass_on(self, inside: HttpSide, request: h11.Request) -> None:
        """A request for http://..., which is read here, answered by its server, and never kept open for the next."""
        try:
            asked = plain_target(request)
        except Nonsense as e:
            await self._ways.refuse(e.attempt, str(e))
            await answer(inside, 400, str(e))
            return
        if asked is None:
            await answer(inside, 200, self._ways.describe())
            return
        try:
            if outside := await self._reach(inside, asked.attempt):
                await self._exchange(inside, outside, request, asked)
        finally:
            self._ways.end(asked.attempt)

    async def _exchange(self, inside: HttpSide, outside: ByteStream, request: h11.Request, asked: Plain) -> None:
        attempt, stillness = asked.attempt, Stillness(self._ways.limits.idle_seconds)
        headers = [(b"host", authority(attempt)), *(pair for pair in onward(request.headers) if pair[0] != b"host"), (b"connection", b"close")]
        server = HttpSide(Metered(outside, self._ways, attempt, stillness), h11.CLIENT, self._ways.turns)
        try:
            await together(stillness, exchange(inside, server, h11.Request(method=request.method, target=asked.target, headers=headers)))
        except (Malformed, Cut, OverLimit) as e:
            attempt.fail(str(e))
            if inside.state.our_state is not h11.SEND_RESPONSE:
                raise  # in the middle of its answer: a cut is all that a program can understand
            status = 400 if inside.state.their_state is h11.ERROR else 429 if isinstance(e, OverLimit) else 502
            await answer(inside, status, str(e), _room_seconds(e))
        finally:
            outside.cut()

    async def _reach(self, inside: HttpSide, attempt: Attempt) -> ByteStream | None:
        """A connection for it; None when there is none, and the program was told why."""
        try:
            return await self._ways.connect(attempt, await self._begin(attempt))
        except (Refused, OverLimit, Unreachable) as e:
            await answer(inside, _STATUS[type(e)], str(e), _room_seconds(e))
        return None

    async def _begin(self, attempt: Attempt) -> Grant:
        """Raises Refused, OverLimit."""
        attempt.cut = self._stream.cut
        return await self._ways.begin_attempt(attempt)

    # --- tunnels -------------------------------------------------------------------------------------------------------------------------

    async def _connect(self, inside: HttpSide, request: h11.Request) -> None:
        try:
            attempt = tunnel_target(request)
        except Nonsense as e:
            await self._ways.refuse(e.attempt, str(e))
            await answer(inside, 400, str(e))
            return

        async def accept() -> bytes:
            await inside.send(h11.Response(status_code=200, headers=[], reason=b"Connected"))
            return inside.left

        if error := await self._open_tunnel(attempt, accept):
            await answer(inside, _STATUS[type(error)], str(error), _room_seconds(error))

    async def _socks(self, first: bytes) -> None:
        try:
            asked = await socks.greet(self._stream, first, self._ways.limits.head_seconds)
        except socks.NotConnect as e:
            await self._ways.refuse(Attempt(e.host[:SHOWN_CHARACTERS_MAX] or UNREADABLE, e.port, "tcp", method="SOCKS"), str(e))
            raise
        name = normal_host(asked.host)
        attempt = Attempt(name or asked.host[:SHOWN_CHARACTERS_MAX], asked.port, "tls", method="SOCKS")
        if name is None:
            await self._ways.refuse(attempt, "SOCKS5 names no host")
            await socks.refuse(self._stream, socks.NOT_ALLOWED)
            return

        async def accept() -> bytes:
            await socks.accept(self._stream)
            return asked.left

        if error := await self._open_tunnel(attempt, accept):
            await socks.refuse(self._stream, socks.UNREACHABLE if isinstance(error, Unreachable) else socks.NOT_ALLOWED)

    async def _open_tunnel(self, attempt: Attempt, accept: Accept) -> Refused | OverLimit | Unreachable | None:
        """And through it, until its end; or why there is none."""
        try:
            grant = await self._begin(attempt)
            secrets = self._secrets(attempt, grant)
            outside = await self._ways.connect(attempt, grant, tls=bool(secrets))
            await self._tunnel(attempt, grant, outside, accept, secrets)
        except (Refused, OverLimit, Unreachable) as e:
            return e
        finally:
            self._ways.end(attempt)
        return None

    def _secrets(self, attempt: Attempt, grant: Grant) -> Sequence[Secret]:
        return self._ways.secrets(attempt) if grant.speech == "tls" else ()

    async def _tunnel(self, attempt: Attempt, grant: Grant, outside: ByteStream, accept: Accept, secrets: Sequence[Secret]) -> None:
        """Its end is the program's to see and the record's to tell."""
        try:
            left = await accept()
            if grant.speech == "tcp":
                await self._ways.sent(attempt, len(left))
                await outside.write(left)
            else:
                opening = Opening(self._stream, attempt, self._ways.limits.head_seconds)
                hello, left = await opening.hello(left)
                if secrets:
                    await self._broker(attempt, outside, hello + left)
                    return
                stillness = Stillness(self._ways.limits.idle_seconds)
                await together(stillness, opening.pass_on(hello, left, Metered(outside, self._ways, attempt, stillness)))
            await self._relay(attempt, self._stream, outside)
        except NotTls as e:
            attempt.refuse(str(e) or f"what the machine sends to {attempt.place} is not TLS; anything else needs the rule tcp://{attempt.place}")
        except HungUp:
            raise
        except (Cut, OverLimit, Malformed) as e:
            attempt.fail(str(e))
        finally:
            outside.cut()

    async def _relay(self, attempt: Attempt, inside: ByteStream, outside: ByteStream) -> None:
        ways = self._ways
        await Relay(inside, outside, ways.limits.idle_seconds, lambda n: ways.sent(attempt, n), lambda n: ways.received(attempt, n)).run()

    async def _broker(self, attempt: Attempt, outside: ByteStream, hello: bytes) -> None:
        """TLS is opened here: each request gets its secrets, and each answer loses them."""
        ways, inside = self._ways, TlsStream(self._stream, self._ways.authority(attempt.host))
        async with asyncio.timeout(ways.limits.head_seconds):
            await inside.begin(hello)
        stillness = Stillness(ways.limits.idle_seconds)
        brokered = Brokered(inside, Metered(outside, ways, attempt, stillness), attempt, lambda: ways.secrets(attempt), ways.turns, ways.bodies)
        while (request := await brokered.next_request(ways.limits.idle_seconds)) is not None:
            one = brokered.attempt(request)
            ways.note(one)
            try:
                stillness.moved()
                await together(stillness, brokered.serve(request, one))
            except Malformed as e:
                one.refuse(str(e))
                await brokered.refuse(str(e))
                return
            except Cut as e:
                one.fail(str(e))
                raise
            finally:
                ways.end(one)
            if brokered.went == "switched":
                await brokered.pass_what_is_left()
                await self._relay(attempt, inside, brokered.scrubbed(outside))
            if brokered.went != "again":
                await inside.end()
                return


def _room_seconds(error: Exception) -> int | None:
    return error.seconds if isinstance(error, OverLimit) else None


async def answer(inside: HttpSide, status: int, sentence: str, again_seconds: int | None = None) -> None:
    """Also in the reason phrase: of a refused CONNECT most clients show nothing else."""
    reason = "".join(c if " " <= c <= "~" else "?" for c in sentence.splitlines()[0])[:REASON_CHARACTERS_MAX]
    body = f"{sentence}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body)), (b"server", AGENT), (b"connection", b"close")]
    if status != 200:
        if again_seconds is not None:
            headers.append((b"retry-after", b"%d" % again_seconds))
        headers.append((b"x-everforge-egress", b"refused" if status in (403, 429) else b"failed"))
    await inside.send(h11.Response(status_code=status, headers=headers, reason=(reason if status != 200 else "OK").encode("ascii")))
    await inside.send(h11.Data(data=body))
    await inside.send(h11.EndOfMessage())
