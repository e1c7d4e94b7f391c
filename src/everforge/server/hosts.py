"""Under which names the server answers.

A web page can have its own name lead to 127.0.0.1 from one moment to the next (DNS rebinding): then a browser on this computer takes the server for
a part of that page, and lets the page talk to it. What it cannot change is the name in the `Host` header. So a server that listens on this computer
alone answers only to names of this computer, and to those that its owner gave it.
"""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

from everforge.wire.errors import HostUnknown

from .settings import ServerSettings

LOCAL = "localhost"


class Hosts:
    def __init__(self, settings: ServerSettings) -> None:
        self._all = not _is_this_computer(settings.host)  # others come by whatever name they know it under
        names = (LOCAL, settings.host, socket.gethostname(), urlsplit(settings.public_url).hostname or "", *settings.hosts)
        self._names = frozenset(_normal(name) for name in names)

    def check(self, header: str) -> None:
        """Raises HostUnknown. Nothing at all is no browser's."""
        name = _normal(_without_port(header))
        if self._all or not name or name in self._names or name.endswith("." + LOCAL) or _is_address(name):
            return
        raise HostUnknown(f"this server is not known as {name[:100]!r}: reach it as 127.0.0.1, or add that name to its setting `hosts`")


def _normal(name: str) -> str:
    return name.strip().lower().rstrip(".")


def _without_port(header: str) -> str:
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.rpartition(":")[0] if header.count(":") == 1 else header


def _is_address(name: str) -> bool:
    """It was typed or linked as such, and nobody can have it lead elsewhere."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_this_computer(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return _normal(host) == LOCAL
