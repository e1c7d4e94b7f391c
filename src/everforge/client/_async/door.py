"""One request, asked again where that is safe, and its answer or one error of ours."""

from __future__ import annotations

import json
import math
import secrets
import sys
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, TypeVar, cast
from urllib.parse import urlencode

import everforge
from everforge.wire import api
from everforge.wire.errors import ClientError, EverforgeError, InvalidInput, StillRunning, Uncertain, Unreachable
from everforge.wire.sentences import CAUSES, say
from everforge.wire.sentences import quoted as shown

from ..config import Access
from ..decoding import decode
from ..failures import BODY_BYTES_MAX, VERSION_HEADER, Cut, Unreached, error_of, foreign
from ..paths import quoted
from ..pauses import Deadline, Patience
from .transport import AsyncAnswer, AsyncTransport, sleep

ANSWER_BYTES_MAX = 64 * 1024 * 1024  # of JSON; a page of a tape is far less
SILENCE_SECONDS = 60.0  # how long a server may say nothing to a plain request
SLOW_SECONDS = 600.0  # and to one that saves, wakes or copies a whole machine
RETRY_SECONDS = 30.0
T = TypeVar("T")
Query = Mapping[str, object]


def new_key() -> str:
    return secrets.token_hex(16)


def segment(text: object) -> str:
    """One part of a path, whatever is in it."""
    if not isinstance(text, str) or not text or text in (".", ".."):
        raise InvalidInput(say("bad_name", text=shown(text)))
    return quoted(text)


def body_of(request: api.Request) -> dict[str, Any]:
    """What is not given is left out."""
    found: dict[str, Any] = {}
    for f in fields(request):
        value = getattr(request, f.name)
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidInput(f"{f.name} must be a number that can be written out, not {value}")
        if value is not None:
            found[f.name] = body_of(value) if isinstance(value, api.Request) else value
    return found


class AsyncDoor:
    """To one server, with one token."""

    def __init__(self, access: Access, retry_seconds: float = RETRY_SECONDS, on_connection: Callable[[bool], Any] | None = None) -> None:
        self.base_url = access.base_url
        self.retry_seconds = retry_seconds
        self._on_connection = on_connection
        self._lost = False
        self.headers = {"User-Agent": f"everforge-python/{everforge.__version__} Python/{sys.version.split()[0]}"}
        if access.token:  # there is none before one has signed up
            self.headers["Authorization"] = f"Bearer {access.token}"
        self._transport = AsyncTransport(self.base_url, self.headers)
        self._closed = False
        self.met = False  # has this server ever answered? Then it may only be restarting

    async def close(self) -> None:
        self._closed = True
        await self._transport.close()

    def check_open(self) -> None:
        if self._closed:
            raise ClientError(say("closed"))

    def tell(self, connected: bool) -> None:
        """Of streams that find their way back by themselves: whoever watches them is told once of a loss, and once when it is over."""
        if self._lost is connected:
            self._lost = not connected
            if self._on_connection is not None:
                self._on_connection(connected)

    def url(self, path: str, query: Query | None = None) -> str:
        pairs: list[tuple[str, str]] = []
        for name, value in (query or {}).items():
            several = cast(Sequence[object], value) if isinstance(value, list) else [value]
            pairs += [(name, _spelled(one)) for one in several if one is not None]
        return f"{self.base_url}/v1{path}" + (f"?{urlencode(pairs, errors='surrogateescape')}" if pairs else "")

    # --- plain questions -----------------------------------------------------------------------------------------------------------------

    async def get(self, cls: type[T], path: str, query: Query | None = None, deadline: Deadline | None = None) -> T:
        """StillRunning when the deadline comes first."""
        return decode(cls, await self.ask("GET", self.url(path, query), again=True, deadline=deadline))

    async def post(
        self,
        cls: type[T],
        path: str,
        request: api.Request | None = None,
        *,
        key: str | None = None,
        again: bool = False,
        silence_seconds: float = SILENCE_SECONDS,
        method: str = "POST",
    ) -> T:
        """With a key it is safe to ask again: the server then gives the same answer."""
        body = b"{}" if request is None else _encode(body_of(request))
        return decode(cls, await self.ask(method, self.url(path), body, key=key, again=again or key is not None, silence_seconds=silence_seconds))

    async def delete(self, path: str, query: Query | None = None) -> None:
        """Nothing that was deleted can be deleted twice, so that asking again is safe; only, it may then be gone already."""
        try:
            await self.ask("DELETE", self.url(path, query), again=False, silence_seconds=SLOW_SECONDS)
        except Uncertain:
            try:
                await self.ask("DELETE", self.url(path, query), again=True, silence_seconds=SLOW_SECONDS)
            except EverforgeError as e:
                if e.http_status != 404:
                    raise

    async def ask(
        self,
        method: str,
        url: str,
        body: bytes | None = None,
        *,
        again: bool,
        key: str | None = None,
        silence_seconds: float = SILENCE_SECONDS,
        deadline: Deadline | None = None,
    ) -> bytes:
        headers = {} if body is None else {"Content-Type": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key

        async def attempt() -> bytes:
            answer = await self.send(method, url, headers, body, silence_seconds if deadline is None else deadline.within(silence_seconds))
            if deadline is not None and deadline.left is not None:
                answer.end_after(deadline.left)
            return await self.finish(answer, method)

        return await self.patiently(attempt, again, deadline)

    async def finish(self, answer: AsyncAnswer, method: str) -> bytes:
        """The whole of an answer, that is then closed."""
        try:
            with self.cuts(method):
                return await answer.read(ANSWER_BYTES_MAX)
        finally:
            await answer.close()

    async def patiently(self, attempt: Callable[[], Any], again: bool, deadline: Deadline | None = None) -> Any:
        """`again`: may it be done twice, when we do not know whether it was done?"""
        patience = Patience(self.retry_seconds)
        patience.start()
        while True:
            try:
                return await attempt()
            except EverforgeError as error:
                pause = patience.pause(error.retry_after_seconds) if self.may_ask_again(error, again) else None
                if pause is None:
                    raise
            await sleep(pause if deadline is None else deadline.within(pause))
            if deadline is not None and deadline.passed:
                raise StillRunning(say("no_answer_in_time"))

    def may_ask_again(self, error: EverforgeError, again: bool) -> bool:
        if isinstance(error, Uncertain):
            return again
        if isinstance(error, Unreachable):
            return self.met  # nothing happened; and it may only be restarting
        return error.http_status in (429, 503) and error.retry != "never"  # refused: nothing happened

    # --- one try -------------------------------------------------------------------------------------------------------------------------

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | AsyncIterator[bytes] | None, silence_seconds: float
    ) -> AsyncAnswer:
        """An answer that is a success, its body yet to come; whoever asked closes it."""
        self.check_open()
        with self.cuts(method):
            answer = await self._transport.send(method, url, headers, content, silence_seconds)
            is_ours, is_success = VERSION_HEADER in answer.headers, 200 <= answer.status < 300
            if is_ours and is_success:
                self.met = True
                return answer
            try:
                if is_success:
                    raise foreign(self.base_url)
                body = await self._refusal(answer, is_ours)
            finally:
                await answer.close()
        self.met = True
        raise error_of(answer.status, answer.headers, body, self.base_url)

    async def _refusal(self, answer: AsyncAnswer, is_ours: bool) -> bytes:
        """Its body. A stranger's may be as broken as it likes: that it is one is known already."""
        try:
            return await answer.read(BODY_BYTES_MAX)
        except Cut:
            if is_ours:
                raise
            return b""

    @contextmanager
    def cuts(self, method: str) -> Generator[None]:
        try:
            yield
        except Unreached as e:
            raise self.unreachable(e) from e
        except Cut as e:
            raise Uncertain(say("cut" if method == "GET" else "cut_unsure", url=self.base_url), cause=str(e)) from e

    def unreachable(self, cause: Exception) -> Unreachable:
        why = cause.cause if isinstance(cause, Unreached) else CAUSES["failed"]
        return Unreachable(say("unreachable", url=self.base_url, cause=why), cause=str(cause))


def _spelled(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _encode(value: object) -> bytes:
    try:
        return json.dumps(value, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as e:
        raise InvalidInput(f"that cannot be written as JSON: {e}") from e
