"""What a server's refusal becomes here: an error of the one tree, by its code. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, cast

from everforge import __version__
from everforge.wire.errors import EverforgeError, Uncertain, Unreachable, VersionMismatch

BODY_BYTES_MAX = 1024 * 1024  # of an error; ours are a few hundred
VERSION_HEADER = "x-everforge-version"  # every answer of a server has it
UPDATE = "update whichever of client and server is older"


class Unreached(Exception):
    """No connection could be made: whatever was to be asked has not been heard."""


class Cut(Exception):
    """The connection ended in the middle: what was asked may have been done, or not."""


class Closed(Cut):
    """The server closed a WebSocket, and said why."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason or f"closed with {status}")
        self.status = status


class Refusal(Exception):
    """A WebSocket was refused in the handshake: a whole HTTP answer."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"HTTP {status}")
        self.status, self.headers, self.body = status, headers, body


@cache
def known() -> dict[str, type[EverforgeError]]:
    def below(cls: type[EverforgeError]) -> Iterator[type[EverforgeError]]:
        yield cls
        for sub in cls.__subclasses__():
            yield from below(sub)

    return {cls.code: cls for cls in below(EverforgeError)}


def error_of(status: int, headers: Mapping[str, str], body: bytes, base_url: str) -> EverforgeError:
    """Of an answer that is no success."""
    fields = _fields(body)
    code = fields.get("code")
    if not isinstance(code, str) or not code:
        return _foreign(status, base_url)
    server = headers.get(VERSION_HEADER)
    if code in ("RouteNotFound", "MethodNotAllowed") and server != __version__:
        return VersionMismatch(
            f"the server at {base_url} ({server or 'of another version'}) does not know this request of client {__version__}: {UPDATE}"
        )
    error = error_from(fields, status)
    if status == 401:
        error.message = f"the server at {base_url} does not know this token: run `everforge login`, or give the right one"
        error.args = (error.message,)
    error.request_id = _text(fields.get("id")) or headers.get("x-request-id")
    error.retry_after_seconds = _seconds(headers.get("retry-after"))
    return error


def foreign(base_url: str, why: str = "") -> VersionMismatch:
    """Somebody else answers there."""
    return VersionMismatch(f"what answers at {base_url} is not an Everforge server{f' ({why})' if why else ''}: check the address")


def error_from(fields: Mapping[str, Any], status: int = 500) -> EverforgeError:
    """Of an error's body. A code that this client is too young for stays as it is, with its message."""
    code, message, details = _text(fields.get("code")) or "Internal", _text(fields.get("message")), fields.get("details")
    cls = known().get(code)
    if cls is None:
        retry = fields.get("retry")
        attributes = {"code": code, "http_status": status, "retry": retry if retry in ("never", "later", "now") else "never"}
        cls = type("EverforgeError", (EverforgeError,), attributes)
    error = cls(message or f"the server answered {code}")
    error.details = dict(cast(Mapping[str, object], details)) if isinstance(details, dict) else {}
    return error


def _foreign(status: int, base_url: str) -> EverforgeError:
    if status == 503:
        return Unreachable(f"{base_url} answered with {status}: the server behind it is not there at the moment")
    if status in (502, 504):
        return Uncertain(f"{base_url} answered with {status}: the server behind it went away, and whether the request was carried out is not known")
    return foreign(base_url, f"HTTP {status}")


def _fields(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return cast(Mapping[str, Any], found) if isinstance(found, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _seconds(value: str | None) -> float:
    try:
        return max(0.0, min(float(value or 0), 3600.0))
    except ValueError:  # a date: no server of ours writes one
        return 0.0
