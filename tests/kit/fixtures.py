"""Fixtures that several folders of tests share; conftest.py of each takes what it needs from here."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from everforge.machines.service import Machines

from .house import House
from .real import processes_of, real_machines, until_gone


@pytest.fixture
def data() -> Iterator[Path]:
    """A data folder with a short name, since sockets lie in it; gone after the test, together with all that ran in it."""
    folder = Path(tempfile.mkdtemp(prefix="ef-"))
    yield folder
    for pid in processes_of(folder):  # of a test that failed: one that passed has seen to it that there are none
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
    folder.with_name(f"{folder.name}.server.log").unlink(missing_ok=True)


@pytest.fixture
async def machines(data: Path) -> AsyncIterator[Machines]:
    async with real_machines(data) as machines:
        yield machines
    await until_gone(data)


@pytest.fixture
async def house() -> AsyncIterator[House]:
    """A server on the fake engine."""
    house = House()
    await house.start()
    yield house
    await house.close()
