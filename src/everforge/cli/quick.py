"""One GET with a plain socket, for those two who are in a hurry: `machine list`, and completion in the shell. The SDK's libraries take several
times as long to load as the server to answer.

It does the ordinary case and no other. Whatever is not (another scheme, a refusal, a proxy, a cut) raises NotQuick, and the SDK is asked instead,
which has a sentence for everything. Nothing is lost by that: a GET can be asked twice.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

SECONDS_MAX = 2.0  # of silence; whoever takes longer is asked by the SDK, which is patient
ANSWER_BYTES_MAX = 64 * 1024 * 1024


class NotQuick(Exception):
    pass


def fetch(path: str, query: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The JSON object that it answers with."""
    import json
    from urllib.parse import urlencode

    from everforge import __version__
    from everforge.client.config import find_access

    access = find_access()
    if any(os.environ.get(name) for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")):
        raise NotQuick("through a proxy")
    host, port, below = _place(access.base_url)
    target = f"{below}{path}?{urlencode(query, errors='surrogateescape')}"
    lines = (f"GET {target} HTTP/1.1", f"Host: {host}:{port}", f"Authorization: Bearer {access.token}", f"User-Agent: everforge-cli/{__version__}")
    answer = _exchange(host, port, "\r\n".join((*lines, "Accept: application/json", "Connection: close", "", "")).encode("ascii"))
    found = json.loads(_body(answer))
    if not isinstance(found, dict):
        raise NotQuick("not an object")
    return found  # pyright: ignore[reportUnknownVariableType]


def _place(url: str) -> tuple[str, int, str]:
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname or ":" in parts.hostname or not url.isascii():
        raise NotQuick("not a plain address")
    return parts.hostname, parts.port or 80, parts.path


def _exchange(host: str, port: int, request: bytes) -> bytes:
    import socket

    parts: list[bytes] = []
    size = 0
    try:
        with socket.create_connection((host, port), SECONDS_MAX) as connection:
            connection.sendall(request)
            while chunk := connection.recv(256 * 1024):
                parts.append(chunk)
                size += len(chunk)
                if size > ANSWER_BYTES_MAX:
                    raise NotQuick("too long")
    except OSError as e:
        raise NotQuick(str(e)) from e
    return b"".join(parts)


def _body(answer: bytes) -> bytes:
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *headers = head.split(b"\r\n")
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in headers)}
    whole = fields.get(b"content-length", b"") == str(len(body)).encode() and b"transfer-encoding" not in fields
    ours = b"x-everforge-version" in fields
    if not first.startswith(b"HTTP/1.1 200 ") or b"content-encoding" in fields or not whole or not ours:
        raise NotQuick(first.decode("latin-1"))
    return body
