"""What a server tells the person who has started it: where it is, who can log in from where, and what to try first."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import shlex
import socket
import sys
from pathlib import Path

from .settings import ServerSettings

TEXT = """
{log_in}

On this computer no log-in is needed. In a second terminal, for a first machine:

    {everforge} repl

or from Python ({python}):

    from everforge import Everforge
    machine = Everforge().create()
    machine.run("x = 41")
    print(machine.run("x + 1").value)   # 42, today or next year

Will it harm my computer? Harmless attacks, tried in a machine of its own: {everforge} sandbox test

Ctrl-C stops the server; machines go to sleep, or go on with what they run, and are there again at the next start.
"""
FROM_ANOTHER = "Log in from another computer, once and within 15 minutes: {link}"
FROM_HERE = """A log-in link, good once and within 15 minutes: {link}
It works on this computer alone: to let others in, start with --host 0.0.0.0, or set public_url to the address that they use."""
EVERYWHERE = ("0.0.0.0", "::")


def welcome(settings: ServerSettings, url: str, code: str, data: Path | None) -> str:
    """`url` is where this computer reaches it; `data` its data folder, if that is not the one that everybody looks in."""
    link = f"{_url_for_others(settings, url)}/login/{code}"
    log_in = (FROM_HERE if _is_for_here_alone(settings) else FROM_ANOTHER).format(link=link)
    given = "" if data is None else f"EVERFORGE_DATA={shlex.quote(str(data))} "
    return TEXT.format(log_in=log_in, everforge=given + _program("everforge"), python=given + _program("python"))


def _is_for_here_alone(settings: ServerSettings) -> bool:
    if settings.public_url:
        return False
    try:
        return ipaddress.ip_address(settings.host).is_loopback
    except ValueError:
        return settings.host == "localhost"


def _url_for_others(settings: ServerSettings, url: str) -> str:
    """A server that listens at all addresses has one that others reach; by which name they know it, nobody here can tell."""
    if settings.public_url or settings.host not in EVERYWHERE:
        return url
    return f"http://{_own_address()}:{url.rpartition(':')[2]}"


def _own_address() -> str:
    """The one that others most likely see. Nothing is sent to find it."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # an address that is nobody's, kept for documents
        return probe.getsockname()[0]
    return socket.gethostname()


def _program(name: str) -> str:
    """As it can be typed in the folder that the server was started in."""
    place = Path(sys.prefix) / "bin" / name
    if not place.exists():
        return name
    return os.path.relpath(place) if place.is_relative_to(Path.cwd()) else str(place)
