from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from kit.real import real_machines, until_gone

from everforge.machines.service import Machines


@pytest.fixture
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder with a short name: sockets lie in it."""
    yield tmp_path_factory.mktemp("data", numbered=True)


@pytest.fixture
async def machines(data: Path) -> AsyncIterator[Machines]:
    async with real_machines(data) as machines:
        yield machines
    await until_gone(data)
