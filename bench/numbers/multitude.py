"""A hundred thousand machines in the store, against ten: a page of them, a page by tag, an instruction on one."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.house import House
from bench.measure import Result, in_turns, result
from bench.multitude import add_machines
from bench.service import ANSWER_SECONDS, Server, started
from everforge.server.datafolder import DataFolder

from .door import Http

MANY, FEW = 100_000, 10
PAGE, TAGGED = "limit=10", "limit=10&tag=rare=yes"


async def measure(house: House, count: int) -> list[Result]:
    async with _server(house.folder / "many", MANY) as many, _server(house.folder / "few", FEW) as few:
        pages = await in_turns(count, lambda: _list(many, PAGE), lambda: _list(few, PAGE))
        tagged = await in_turns(count, lambda: _list(many, TAGGED), lambda: _list(few, TAGGED))
        doors = [Http(server, await server.create()) for server in (many, few)]
        instructions = await in_turns(count, lambda: _run(doors[0]), lambda: _run(doors[1]))
        for door in doors:
            door.close()
    sides = f"{MANY:,} machines in the store", f"{FEW} machines in the store"
    taken = {"13-list": pages, "13-tags": tagged, "13-exec": instructions}
    return [result(key, ours, theirs, sides) for key, (ours, theirs) in taken.items()]


@asynccontextmanager
async def _server(data: Path, machines: int) -> AsyncGenerator[Server]:
    async with started(data) as server:
        like = await server.create()
        door = Http(server, like)
        await asyncio.to_thread(door.run)
        door.close()
    await asyncio.to_thread(add_machines, DataFolder(data).database, like, machines)
    async with started(data) as server:
        yield server


async def _list(server: Server, query: str) -> float:
    return _seconds(server, query)


def _seconds(server: Server, query: str) -> float:
    request = urllib.request.Request(f"{server.url}/v1/machine/list?{query}", headers=server.headers)
    began = time.perf_counter()
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as response:
        found = json.load(response)
    took = time.perf_counter() - began
    assert len(found["machines"]) == 10
    return took


async def _run(door: Http) -> float:
    began = time.perf_counter()
    assert door.run() == "2"
    return time.perf_counter() - began
