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
    with connected() as server, suggesting(name):
        yield server.machine(name)


@contextmanager
def suggesting(name: str | None) -> Generator[None]:
    """That there is no machine of this name is said with the near ones, by whoever was asked for it; None: none was named."""
    from everforge.wire.errors import MachineNotFound

    from .names import near_names

    try:
        yield
    except MachineNotFound as error:
        if name is not None:
            error.message = error.message.rstrip(".") + near_names(name)
        raise
