"""What a server's refusal becomes here: an error of the one tree, by its code. No I/O."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, cast

from everforge import __version__
from everforge.wire.errors import EverforgeError, Uncertain, Unreachable, VersionMismatch
from everforge.wire.sentences import CAUSES, say

BODY_BYTES_MAX = 1024 * 1024  # of an error; ours are a few hundred
CHAIN_MAX = 10  # of errors behind an error
VERSION_HEADER = "x-everforge-version"  # every answer of a server has it


class Unreached(Exception):
    """No connection could be made: whatever was to be asked has not been heard. `cause` is one of those that the wire has a word for."""

    def __init__(self, why: str, cause: str = "failed") -> None:
        super().__init__(why)
        self.cause = CAUSES[cause]


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


def cause_of(error: BaseException | None) -> str:
    """Which of the wire's causes it is, by the system's own error behind a library's, wherever that stands in the chain."""
    for _ in range(CHAIN_MAX):
        if isinstance(error, ConnectionRefusedError):
            return "refused"
        if isinstance(error, socket.gaierror) or is_no_name(error):
            return "unknown"
        if isinstance(error, ssl.SSLCertVerificationError):
            return "untrusted"
        if isinstance(error, TimeoutError) or (error is not None and "Timeout" in type(error).__name__):
            return "slow"
        if error is not None and "Proxy" in type(error).__name__:
            return "proxy"
        if error is None:
            break
        error = error.__cause__ or error.__context__
    return "failed"


def is_no_name(error: BaseException | None) -> bool:
    """Parts of a name that are empty or longer than any may be are refused by Python itself, before it asks anybody."""
    return isinstance(error, UnicodeError) and "idna" in str(error)


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
        return VersionMismatch(say("other_version", url=base_url, server=server or "of another version", client=__version__))
    error = error_from(fields, status)
    if status == 401:
        error.message = say("token_unknown", url=base_url)
        error.args = (error.message,)
    error.request_id = _text(fields.get("id")) or headers.get("x-request-id")
    error.retry_after_seconds = _seconds(headers.get("retry-after"))
    return error


def foreign(base_url: str) -> VersionMismatch:
    """Somebody else answers there."""
    return VersionMismatch(say("foreign", url=base_url))


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
        return Unreachable(say("gateway_away", url=base_url, status=status))
    if status in (502, 504):
        return Uncertain(say("gateway_cut", url=base_url, status=status))
    return VersionMismatch(say("foreign_status", url=base_url, status=status))


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
