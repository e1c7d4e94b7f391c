"""One real server for all of this folder, a machine to attack, and another one beside it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from everforge import Everforge, Machine
from everforge.cli.sandbox.bait import Bait, laid_out
from everforge.cli.sandbox.ground import waiting_in
from everforge.cli.sandbox.trial import in_machine, look
from functional.conftest import data, machines
from kit.commandserver import CommandServer, command_server

__all__ = ["data", "machines"]

PASSWORD = "in the environment of the server, and of nobody inside"
Saw = Callable[..., dict[str, Any]]


@pytest.fixture(scope="package")
def echo() -> Iterator[tuple[str, int]]:
    """A program on this computer that says again what it hears. The server's owner has opened it to machines, by its exact address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_answer, args=(listener,), daemon=True).start()
        yield listener.getsockname()
        listener.shutdown(socket.SHUT_RDWR)


def _answer(listener: socket.socket) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_echo, args=(connection,), daemon=True).start()


def _echo(connection: socket.socket) -> None:
    with connection, suppress(OSError):
        while heard := connection.recv(4096):
            connection.sendall(heard)


@pytest.fixture(scope="package")
def served(echo: tuple[str, int]) -> Iterator[CommandServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVERFORGE_ALLOW_HOSTS", f"{echo[0]}:{echo[1]}")
        patch.setenv("PASSWORD_OF_THE_HOST", PASSWORD)
        patch.setenv("EVERFORGE_STRANGER_REQUESTS_PER_SECOND", "0")  # whoever tries every door must not be sent away for their number
        with command_server("minimal") as served:
            yield served


@pytest.fixture(scope="package")
def server(served: CommandServer) -> Iterator[Everforge]:
    with Everforge(served.token, served.url) as server:
        yield server


@pytest.fixture(scope="package")
def shared(server: Everforge) -> Machine:
    """For attacks that leave it as it was: they must, or the next one finds out."""
    return server.create("attacked")


@pytest.fixture
def machine(shared: Machine) -> Iterator[Machine]:
    yield shared
    assert shared.run("6 * 7").value == "42", "the attack broke the machine for those who come after it"


@pytest.fixture(scope="package")
def neighbour(server: Everforge) -> Machine:
    return server.create("neighbour")


@pytest.fixture
def bait(served: CommandServer, shared: Machine, neighbour: Machine) -> Iterator[Bait]:
    with laid_out() as bait:
        info = shared.info()
        host, port = served.url.removeprefix("http://").split(":")
        bait.server, bait.warden = (host, int(port)), str(served.data / "run" / "warden.socket")
        bait.neighbour = waiting_in(neighbour, bait.secret)
        bait.limits = {"memory_mb": info.memory_mb, "processes": info.processes, "disk_mb": info.disk_mb}
        yield bait


@pytest.fixture
def saw(machine: Machine) -> Saw:
    """Sends a function into the machine, and returns what it saw there."""

    def saw(function: Callable[[dict[str, Any]], dict[str, Any]], **told: Any) -> dict[str, Any]:
        seen = look(function, in_machine(machine), told, 30)
        assert seen.end == "value", f"the attack was not made: {seen.error}"
        return dict(seen.fact)

    return saw
