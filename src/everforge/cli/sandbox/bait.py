"""Things of this computer laid out for an attack to find: a file, a process, an environment variable, listeners. Each holds a secret that nothing
inside is told, so that only somebody who really saw it can name it."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MARK = "everforge-bait-"
VARIABLE = "EVERFORGE_BAIT"
SERVICES = (
    "/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/var/run/crio/crio.sock",
    "/run/systemd/private", "/run/dbus/system_bus_socket",
)  # fmt: skip
SOMEWHERE = ("192.0.2.1", 9)  # kept for documents: asking for the way there sends nothing


@dataclass(slots=True)
class Listener:
    """Tells the secret to whoever connects, and counts them."""

    name: str
    address: tuple[str, int] | str
    socket: socket.socket
    secret: str
    came: int = 0

    def answer(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return  # closed: it is over
            self.came += 1
            with connection, contextlib.suppress(OSError):
                connection.settimeout(1.0)
                connection.sendall(self.secret.encode())


@dataclass(slots=True)
class Bait:
    secret: str
    folder: Path
    file: Path
    process: subprocess.Popen[bytes]
    listeners: list[Listener]
    server: tuple[str, int] = ("127.0.0.1", 0)  # where its own server listens
    warden: str = ""  # where that server gives its orders, where that is known
    neighbour: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])  # where another machine waits and tells the secret
    limits: dict[str, float] = field(default_factory=dict[str, float])  # of the machine under attack, as the server gave them
    free_mb: int | None = None  # on the server's disk, where that is this computer's
    kernel: str = ""  # of this computer
    root: str = "/"  # from where it is searched for
    door: tuple[str, int] = ("127.0.0.1", 3128)  # in the machine: the way to what it may fetch
    open_policy: bool = True  # the machine's policy lets it through that door to the whole web, and to the listeners by name

    def told(self) -> dict[str, Any]:
        """What an attack is told: where things are, and never what they hold. A real attacker would have to guess."""
        return {
            "file": str(self.file),
            "mark": MARK,
            "root": self.root,
            "door": list(self.door),
            "variable": VARIABLE,
            "pid": self.process.pid,
            "listeners": [listener.address for listener in self.listeners],
            "server": list(self.server),
            "sockets": self.sockets,
            "neighbour": self.neighbour,
            "limits": self.limits,
        }

    def seen_in(self, found: object) -> bool:
        """Is the secret in there, in whatever an attack brought back?"""
        return self.secret in repr(found)

    @property
    def sockets(self) -> list[str]:
        """Of services, and our own. One that is not there outside would show nothing by not being there inside."""
        return [path for path in (*SERVICES, self.warden) if _is_socket(path)] + [
            one.address for one in self.listeners if isinstance(one.address, str)
        ]

    @property
    def rules(self) -> list[str]:
        """By which an owner of a machine would let it reach the listeners, were that theirs to say."""
        places = [one.address for one in self.listeners if not isinstance(one.address, str)]
        here = [(name, places[0][1]) for name in ("localhost", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]")]
        return [f"tcp://{host}:{port}" for host, port in (*places, *here)]

    @property
    def came(self) -> int:
        return sum(listener.came for listener in self.listeners)


@contextmanager
def laid_out() -> Generator[Bait]:
    """For as long as the block lasts; nothing of it stays."""
    secret = secrets.token_hex(16)
    with contextlib.ExitStack() as undo:
        folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix=MARK)))
        folder.chmod(0o755)  # whoever can reach it may read it: only the walls of the machine are to be in the way
        file = folder / f"{MARK}diary.txt"
        file.write_text(secret)
        os.environ[VARIABLE] = secret
        undo.callback(os.environ.pop, VARIABLE, None)
        process = undo.enter_context(_sleeper(secret, folder))
        listeners = [undo.enter_context(_listening(*one, secret)) for one in _places(folder)]
        yield Bait(secret, folder, file, process, listeners, kernel=os.uname().release)


@contextmanager
def _sleeper(secret: str, folder: Path) -> Generator[subprocess.Popen[bytes]]:
    """A process that waits for its stdin to close: also when this one is killed, who then removes no folder. Its command line holds the secret.
    Ctrl-C is not for it: it would only show where it was."""
    code = "import shutil, sys; sys.stdin.buffer.read(); shutil.rmtree(sys.argv[2], ignore_errors=True)"
    words = [sys.executable, "-I", "-S", "-c", code, MARK + secret, str(folder)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def _places(folder: Path) -> list[tuple[str, tuple[str, int] | str]]:
    found: list[tuple[str, tuple[str, int] | str]] = [
        ("127.0.0.1", ("127.0.0.1", 0)),
        ("a local socket", f"\0{MARK}{os.getpid()}"),
        ("a socket file", str(folder / "socket")),
    ]
    if own := own_address():
        found.append((own, (own, 0)))
    return found


def own_address() -> str:
    """Of this computer in its network; empty when it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(SOMEWHERE)
            found = str(asking.getsockname()[0])
        except OSError:
            return ""
    return "" if found.startswith("127.") else found


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(Path(path).stat().st_mode)
    except OSError:
        return False


@contextmanager
def _listening(name: str, address: tuple[str, int] | str, secret: str) -> Generator[Listener]:
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as opened:
        opened.bind(address)
        opened.listen(8)
        listener = Listener(name, address if isinstance(address, str) else opened.getsockname(), opened, secret)
        thread = threading.Thread(target=listener.answer, daemon=True)
        thread.start()
        try:
            yield listener
        finally:
            opened.shutdown(socket.SHUT_RDWR)  # wakes whoever waits in accept
            thread.join(5)
