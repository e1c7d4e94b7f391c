"""What a client must hand to the server that it starts, so that this finds the same machines as the command line here."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everforge.client.config import Access

SHELL_ONLY = ("EVERFORGE_URL", "EVERFORGE_TOKEN", "FOREVERVM_BASE_URL", "FOREVERVM_TOKEN")


def environment(title: str, with_token: bool) -> tuple[dict[str, str], list[str]]:
    """The variables, and what is to be said about them. Without being asked, a token is written into nobody's file."""
    from everforge.client.config import find_access
    from everforge.folders import data_folder

    if with_token:
        access = find_access()
        return {"EVERFORGE_URL": access.base_url, "EVERFORGE_TOKEN": access.token}, []
    here = _access()
    with _without(SHELL_ONLY):
        there = _access()
    if here is None:
        return {}, ["no server is known here yet: start one with `everforge serve`, or run `everforge login`, before you use it"]
    if there is None or there.base_url != here.base_url:
        return {}, [
            f"the server comes from variables of this shell ({_set()}), which {title} does not see: run `everforge login`, "
            "or let them be written into its file with --with-token"
        ]
    return ({} if there.was_given or not os.environ.get("EVERFORGE_DATA") else {"EVERFORGE_DATA": str(data_folder())}), []


def _access() -> Access | None:
    from everforge.client.config import find_access
    from everforge.wire.errors import EverforgeError

    try:
        return find_access()
    except EverforgeError:
        return None


def _set() -> str:
    return ", ".join(name for name in SHELL_ONLY if os.environ.get(name))


@contextmanager
def _without(names: tuple[str, ...]) -> Generator[None]:
    """As a program sees the world that is not started from this shell."""
    kept = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(kept)
