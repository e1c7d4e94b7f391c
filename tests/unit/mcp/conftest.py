from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

import everforge
from everforge.mcp.callers import Local
from everforge.mcp.calls import Link, Settings
from everforge.mcp.server import Offer, make_server
from kit.mcpserving import ERAS, held, named
from kit.newcomer import move_in
from kit.service import Running, service

Connect = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
async def server() -> AsyncGenerator[Running]:
    async with service() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has nothing yet."""
    return move_in(tmp_path, monkeypatch)


@pytest.fixture
def user(home: Path, server: Running, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Who is logged in at the server."""
    monkeypatch.setenv("EVERFORGE_URL", server.url)
    monkeypatch.setenv("EVERFORGE_TOKEN", server.token)
    return home


@pytest.fixture
async def forge(server: Running) -> AsyncGenerator[everforge.AsyncEverforge]:
    """To see from outside what was done."""
    async with everforge.AsyncEverforge(server.token, server.url) as client:
        yield client


@pytest.fixture(params=ERAS)
def connect(request: pytest.FixtureRequest, home: Path) -> Connect:
    """The official client in memory, in both eras of the protocol."""
    return connector(request.param)


@pytest.fixture
async def client(user: Path) -> AsyncGenerator[Client]:
    async with held(connector("auto")()) as made:
        yield made


def connector(mode: str) -> Connect:
    @asynccontextmanager
    async def connected(name: str = "tester", link: Link | None = None, **settings: Any) -> AsyncGenerator[Client]:
        given = Settings(**settings)
        server = make_server(Offer(Local(given), given, link))
        async with Client(server, mode=mode, client_info=named(name)) as client:
            yield client

    return connected
