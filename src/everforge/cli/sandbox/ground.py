"""A server to try the walls of: the one that is running, or one that is started for this and gone afterwards."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING

from everforge.folders import data_folder
from everforge.wire.errors import EverforgeError, InvalidInput, ServerUnknown, Unreachable

from .minder import DATA, END_SECONDS

if TYPE_CHECKING:
    from everforge import Everforge, Machine

    from .bait import Bait

READY = "ready "
MINDER_SECONDS = 4 * END_SECONDS  # for the machines, the server and its warden to end, each of which it gives its time
LOG_BYTES_MAX = 2000  # of what a server that did not start has said, for the message


class NoServer(EverforgeError):
    """None runs, and none could be started."""

    code = "NoServer"


@dataclass(frozen=True, slots=True)
class Found:
    server: Everforge
    running: bool  # it was there before
    data: Path | None  # where its data lie, when that is on this computer and known


def running_server() -> Found | None:
    """The one that was given, or that runs on this computer. Raises Unreachable where one was given and does not answer: no other will do."""
    from everforge import Everforge
    from everforge.client.config import find_access, local_url

    try:
        access = find_access()
    except ServerUnknown:
        return None
    server = Everforge(access.token, access.base_url, retry_seconds=0)
    try:
        server.whoami()
    except Unreachable as e:
        server.close()
        if access.was_given:
            raise Unreachable(f"{e.message}. It is the server of {access.source}: without that, one is started for the test") from e
        return None
    return Found(server, True, data_folder() if local_url() == access.base_url else None)


@contextmanager
def a_server(running: Found | None) -> Generator[Found]:
    """That one; where there is none, one of its own."""
    from everforge import Everforge

    if running is not None:
        with running.server:
            yield running
        return
    with _own_server() as (url, token, data), Everforge(token, url, retry_seconds=0) as server:
        yield Found(server, False, data)


@contextmanager
def _own_server() -> Generator[tuple[str, str, Path]]:
    """Its address, its owner's token and its folder, which goes with it: its minder sees to that, also when this process is killed."""
    with tempfile.TemporaryFile() as log:  # without a name, so that it cannot stay behind either
        process = subprocess.Popen(
            [sys.executable, "-m", "everforge.cli.sandbox.minder"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,  # Ctrl-C ends it too soon: machines are deleted first, and we end it ourselves
        )
        try:
            data = Path(_said(process, log, DATA))
            yield _said(process, log, READY), (data / "owner.token").read_text().strip(), data
        finally:
            _end(process)


def _said(process: subprocess.Popen[bytes], log: IO[bytes], what: str) -> str:
    """What follows these words in a line of its own. Raises NoServer when it ends instead."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.decode().startswith(what):
            return line.decode().removeprefix(what).strip()
    process.wait()
    log.seek(0)
    said = log.read().decode(errors="replace")[-LOG_BYTES_MAX:].strip().splitlines()
    why = said[-1].removeprefix("everforge: ") if said else "it said nothing"
    raise NoServer(f"no server is running, and one could not be started for this ({why}): `everforge doctor` says what is missing")


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(MINDER_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


TAGS = {"made-by": "sandbox-test"}
KEPT = timedelta(hours=1)  # by a server that runs, where nobody is left to delete them: far longer than this takes


def _mortal(machine: Machine) -> Machine:
    """By the server's own clock, which may not be ours."""
    machine.update(expires_at=(datetime.fromisoformat(machine.info().created_at) + KEPT).isoformat())
    return machine


@contextmanager
def a_machine(server: Everforge) -> Generator[Machine]:
    with _gone_afterwards(server) as name:
        yield _mortal(server.create(name, tags=TAGS))


@contextmanager
def an_open_machine(server: Everforge, bait: Bait) -> Generator[Machine]:
    """With a policy that allows as much as any can, so that what is refused all the same is refused whatever the policy. A server may allow less."""
    with _gone_afterwards(server) as name:
        try:
            machine = server.create(name, tags=TAGS, egress="public", egress_allow=bait.rules)
            bait.open_policy = True
        except InvalidInput:
            machine = server.create(name, tags=TAGS)
            bait.open_policy = False
        yield _mortal(machine)


@contextmanager
def _gone_afterwards(server: Everforge) -> Generator[str]:
    """The name of a machine. Made up here, so that one whose making was interrupted is deleted, too."""
    name = f"sandbox-test-{secrets.token_hex(6)}"
    try:
        yield name
    finally:
        with contextlib.suppress(EverforgeError):
            server.machine(name).delete()


WAITING = """
import socket, threading
listener = socket.socket()
listener.bind(("0.0.0.0", 0))
listener.listen(8)
def answer():
    while True:
        listener.accept()[0].sendall({secret!r}.encode())
threading.Thread(target=answer, daemon=True).start()
print(socket.gethostname(), listener.getsockname()[1])
"""


def waiting_in(neighbour: Machine, secret: str) -> list[tuple[str, int]]:
    """A program in another machine that tells the secret to whoever comes. Under which addresses one would look for it."""
    said = neighbour.run(WAITING.format(secret=secret)).raise_for_error().stdout.split()
    return [(host, int(said[1])) for host in ("127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", said[0])]
