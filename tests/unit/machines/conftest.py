from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kit.house import House


@pytest.fixture
async def house() -> AsyncIterator[House]:
    house = House()
    await house.start()
    yield house
    await house.close()
