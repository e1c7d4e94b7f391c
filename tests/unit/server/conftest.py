from __future__ import annotations

from collections.abc import Iterator

import pytest

from kit.service import Running
from kit.wild import Neighbour


@pytest.fixture
def neighbour(running: Running) -> Iterator[Neighbour]:
    """Somebody else on the server that a file of tests has running: unharmed at the end, whatever was tried."""
    neighbour = Neighbour(running)
    yield neighbour
    neighbour.is_served()
    neighbour.close()
