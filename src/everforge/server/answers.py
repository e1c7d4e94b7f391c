"""What clients get: JSON in ASCII (no reader stumbles over it), and one form of error."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, cast

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from everforge import __version__
from everforge.wire.errors import EverforgeError

from .departures import LARGE_BYTES, PIECE_BYTES, Departure, Departures, size_of

RETRY_LATER_SECONDS = 5
VERSION_HEADER = "X-Everforge-Version"  # with every answer
_ENCODER = json.JSONEncoder(separators=(",", ":"))


def to_json(value: Any) -> bytes:
    return _ENCODER.encode(plain(value)).encode("ascii")


def plain(value: Any) -> Any:
    """Dataclasses as the objects that they are on the wire."""
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, list):
        return [plain(item) for item in cast(list[Any], value)]
    return value


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(to_json(value), status, headers, "application/json")


class LargeAnswer(Response):
    """Goes out in pieces, each when the client has taken the one before, and is counted until the last."""

    media_type = "application/json"

    def __init__(self, body: bytes, departure: Departure) -> None:
        super().__init__(body)
        self._departure = departure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._departure:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            for at in range(0, len(self.body), PIECE_BYTES):
                end = at + PIECE_BYTES
                await send({"type": "http.response.body", "body": self.body[at:end], "more_body": end < len(self.body)})


async def departing(departures: Departures, value: Any) -> Response:
    """The answer to a request, whatever its size. Raises TooMany."""
    if (size := size_of(value)) <= LARGE_BYTES:
        body = to_json(value)
        is_large = len(body) > LARGE_BYTES
        return LargeAnswer(body, departures.take(len(body))) if is_large else Response(body, media_type="application/json")
    departure = departures.take(size)
    try:
        async with departures.turn():
            body = to_json(value)
        departure.hold(len(body))
    except BaseException:
        departure.end()
        raise
    return LargeAnswer(body, departure)


async def departing_part(departures: Departures, value: Any, seconds: float, form: bytes = b"%s") -> AsyncGenerator[bytes]:
    """A part of a stream, which waits for its room and has it until the next part is asked for. Raises TooSlow."""
    if (size := size_of(value)) <= LARGE_BYTES:
        yield form % to_json(value)
        return
    with await departures.room(size, seconds) as departure:
        async with departures.turn():
            body = form % to_json(value)
        departure.hold(size + len(body))
        yield body


def error_body(error: EverforgeError, request_id: str) -> dict[str, Any]:
    details = {name: value for name, value in error.details.items() if value is not None}
    return {"code": error.code, "message": error.message, "retry": error.retry, "id": request_id, "details": _safe(details)}


def refusal(error: EverforgeError, request_id: str) -> Response:
    headers: dict[str, str] = {"X-Request-Id": request_id, VERSION_HEADER: __version__}
    if error.http_status in (429, 503):
        headers["Retry-After"] = str(error.details.get("retry_after_seconds", RETRY_LATER_SECONDS))
    if error.http_status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="everforge"'
    return answer(error_body(error, request_id), error.http_status, headers)


def _safe(details: dict[str, Any]) -> dict[str, Any]:
    """An error's details are ours, but must never be the reason that it cannot be told."""
    return json.loads(json.dumps(details, default=str))
