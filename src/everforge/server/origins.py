"""Pages of which other servers may talk to this one from a browser: none, until its owner names them (CORS).

A browser asks first for whatever is more than a plain request, and gives a page the answer only where this server says that it may have it. So where
nothing is said, no page of another server gets anything. WebSockets are not asked about: they are refused here.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.types import Message, Receive, Scope, Send

from everforge.wire.errors import Forbidden

from .settings import ServerSettings

ALL = "*"
METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
HEADERS = "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Range"
EXPOSED = "Content-Length, Content-Range, Retry-After, X-Everforge-Version, X-Request-Id"
REMEMBER_SECONDS = 600


class Origins:
    def __init__(self, settings: ServerSettings) -> None:
        self._allowed = frozenset(origin.rstrip("/").lower() for origin in settings.cors_origins)

    def allows(self, origin: str) -> bool:
        return bool(origin) and (ALL in self._allowed or origin.lower() in self._allowed)

    def check_socket(self, scope: Scope) -> None:
        """Raises Forbidden for a page of another server. A token in the headers is no page's: those cannot set them."""
        origin, host = header(scope, b"origin"), header(scope, b"host")
        if not origin or header(scope, b"authorization") or self.allows(origin) or urlsplit(origin).netloc.lower() == host.lower():
            return
        raise Forbidden(f"pages of {origin[:100]!r} may not use this server: its owner can add them to its setting `cors_origins`")

    async def answer_question(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """A browser's question before the request itself. False where it is none, or where there is nothing to say."""
        origin = header(scope, b"origin")
        if scope["method"] != "OPTIONS" or not header(scope, b"access-control-request-method") or not self.allows(origin):
            return False
        told = {
            "Access-Control-Allow-Methods": METHODS,
            "Access-Control-Allow-Headers": HEADERS,
            "Access-Control-Max-Age": str(REMEMBER_SECONDS),
            "Content-Length": "0",
        }
        headers = [*self._said(origin), *((name.lower().encode(), value.encode()) for name, value in told.items())]
        await send({"type": "http.response.start", "status": 204, "headers": headers})
        await send({"type": "http.response.body", "body": b""})
        return True

    def saying(self, scope: Scope, send: Send) -> Send:
        """What is answered, with the leave to read it where there is one."""
        origin = header(scope, b"origin")
        if not self.allows(origin):
            return send

        async def say(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *self._said(origin), (b"access-control-expose-headers", EXPOSED.encode())]
            await send(message)

        return say

    def _said(self, origin: str) -> list[tuple[bytes, bytes]]:
        return [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"Origin")]


def header(scope: Scope, name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")
