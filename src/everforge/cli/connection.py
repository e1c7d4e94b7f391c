"""The SDK, as a command uses it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everforge import Everforge, Machine


@contextmanager
def connected() -> Generator[Everforge]:
    """To the server of the environment, of `everforge login`, or of this computer."""
    from everforge import Everforge

    with Everforge() as server:
        yield server


@contextmanager
def machine_named(name: str) -> Generator[Machine]:
    """One that is there already; a name that is not is answered with the near ones."""
    from everforge.wire.errors import MachineNotFound

    from .names import near_names

    with connected() as server:
        try:
            yield server.machine(name)
        except MachineNotFound as error:
            error.message = error.message.rstrip(".") + near_names(server, name)
            raise
