from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .driver import Guest


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    """One machine for all tests of a module: each leaves it fit for the next."""
    yield from _attached(tmp_path_factory.mktemp("home"))


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Guest]:
    """A machine for this test alone."""
    yield from _attached(tmp_path)


def _attached(home: Path) -> Iterator[Guest]:
    guest = Guest(home)
    try:
        guest.attach()
        yield guest
    finally:
        guest.close()
