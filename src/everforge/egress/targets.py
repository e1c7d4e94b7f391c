"""What a program asks the door for: a host in its one spelling, a port, and how it will be spoken to. No I/O."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

import h11

from .attempts import PATH_CHARACTERS_MAX, Attempt
from .http import Malformed, check_framing, header, is_upgrade
from .rules import normal_host

SHOWN_CHARACTERS_MAX = 100


class Plain(NamedTuple):
    """A request for http://..."""

    attempt: Attempt
    target: bytes  # as its server wants it


class Nonsense(Malformed):
    """What was asked for names no place, or two. The attempt is there for the record alone."""

    def __init__(self, why: str, attempt: Attempt) -> None:
        super().__init__(why)
        self.attempt = attempt


def plain_target(request: h11.Request) -> Plain | None:
    """None: a question to the door itself. Raises Nonsense."""
    text = request.target.decode("ascii", "replace")
    if text.startswith("/"):
        return None
    method = request.method.decode("ascii", "replace")
    try:
        return _plain(request, text, method)
    except Malformed as e:
        raise Nonsense(str(e), Attempt(text[:SHOWN_CHARACTERS_MAX], 0, "http", method=method)) from None


def _plain(request: h11.Request, text: str, method: str) -> Plain:
    check_framing(request.headers)
    try:
        url = urlsplit(text)
        port = 80 if url.port is None else url.port
    except ValueError:
        raise Malformed("the address of this request is malformed") from None
    host = normal_host(url.hostname or "")
    if url.scheme.lower() != "http" or host is None or url.username is not None or port == 0:
        raise Malformed("a proxy is asked for http://host/path, or with CONNECT for https")
    said = header(request.headers, b"host")
    if said is not None and host_and_port(said.decode("ascii", "replace"), 80) != (host, port):  # programs of HTTP/1.0 may say nothing
        raise Malformed(f"the header Host says {said[:SHOWN_CHARACTERS_MAX].decode('ascii', 'replace')!r}, but the request is for {host}:{port}")
    if is_upgrade(request.headers):
        raise Malformed("another protocol is reached with CONNECT, not by an upgrade")
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    return Plain(Attempt(host, port, "http", method=method, path=url.path[:PATH_CHARACTERS_MAX]), target.encode("ascii"))


def tunnel_target(request: h11.Request) -> Attempt:
    """Of a CONNECT. Raises Nonsense."""
    text = request.target.decode("ascii", "replace")
    found = host_and_port(text, None)
    has_body = any(key in (b"content-length", b"transfer-encoding") and value != b"0" for key, value in request.headers)
    if found is None or has_body:
        why = "CONNECT has no body" if has_body else "CONNECT names a host and a port, as in example.com:443"
        raise Nonsense(why, Attempt(text[:SHOWN_CHARACTERS_MAX], 0, "tls", method="CONNECT"))
    return Attempt(found[0], found[1], "tls", method="CONNECT")


def host_and_port(text: str, usual: int | None) -> tuple[str, int] | None:
    try:
        found = urlsplit(f"//{text}")
        port = usual if found.port is None else found.port
    except ValueError:
        return None
    host = normal_host(found.hostname or "")
    if host is None or not port or found.netloc != text or found.username is not None:
        return None
    return host, port


def authority(attempt: Attempt) -> bytes:
    """As the header Host says it."""
    host = f"[{attempt.host}]" if ":" in attempt.host else attempt.host
    return (host if attempt.port == 80 else f"{host}:{attempt.port}").encode("ascii")
