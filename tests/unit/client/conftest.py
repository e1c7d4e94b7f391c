from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

import everforge
from kit.proxy import Proxy, proxy
from kit.service import Running, service
from kit.twins import KINDS, connected


@pytest.fixture
async def server() -> AsyncGenerator[Running]:
    async with service() as running:
        yield running


@pytest.fixture
async def wire(server: Running) -> AsyncGenerator[Proxy]:
    """Between the client and the server, to be cut."""
    async with proxy(server.url) as between:
        yield between


@pytest.fixture(params=KINDS)
async def client(request: pytest.FixtureRequest, server: Running, wire: Proxy) -> AsyncGenerator[everforge.AsyncEverforge]:
    """Both clients, one after the other, through the wire."""
    async with connected(request.param, wire.url, server.token) as made:
        yield made
