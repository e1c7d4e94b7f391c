"""The limits of a server: each does what its setting says, and is what the document says."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_type_hints

import httpx2
import pytest
from websockets.asyncio.client import connect

from everforge.accounts.links import LINKS_MAX
from everforge.machines.requests import KEY_LENGTH_MAX
from everforge.machines.service import Machines
from everforge.server.arrivals import FREE_BYTES
from everforge.server.configuration import Configuration
from everforge.server.connections import PIPELINE_MAX
from everforge.server.doors import connect as connect_door
from everforge.server.doors.machines import LOOKED_AT_MAX
from everforge.server.settings import ServerSettings, check
from everforge.server.socketconnections import FRAGMENTS_MAX
from everforge.server.sockets import REQUEST_ID_LENGTH_MAX
from everforge.server.weight import VALUES_MAX
from everforge.wire.errors import InvalidInput
from kit.house import quick
from kit.service import QUIET, Running, service

DOCUMENT = Path(__file__).parents[3] / "docs" / "server.md"
KB, MB, GB = 1024, 1024**2, 1024**3
NO_LIMITS = {"host", "hosts", "port", "public_url"}
LONG_SECONDS = 30.0  # far more than any of the short ones here


# --- what the document says ----------------------------------------------------------------------------------------------------------


def shown(name: str, value: float) -> str:
    if value == 0:
        return "0"
    if "_bytes" in name:
        unit, size = next((unit, size) for unit, size in (("GB", GB), ("MB", MB), ("KB", KB), ("bytes", 1)) if value >= size)
        return f"{value / size:g} {unit}"
    if "_mb" in name:
        return f"{value:,} MB"
    plain = f"{value:,g}" if value < 1e5 else f"{value:,.0f}"
    unit = next((unit for part, unit in (("_seconds", " s"), ("_hours", " h")) if part in name), "")
    return f"{plain}{unit}"


PARTS = [part for name, part in get_type_hints(Configuration).items() if name != "given"]
PAGES = {"ServerSettings": "server", "MachineSettings": "server", "AccountSettings": "accounts"}
PAGES |= {"EgressSettings": "egress", "AuditSettings": "audit", "WebhookSettings": "webhooks"}


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_the_documents_have_every_limit_with_its_default(part: Any) -> None:
    page = PAGES[part.__name__]
    if page != "server":
        assert f"[{page}.md]({page}.md)" in DOCUMENT.read_text(encoding="utf-8").partition("## What bounds it")[2]
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", DOCUMENT.with_name(f"{page}.md").read_text(encoding="utf-8"), re.MULTILINE)
    defaults = {f.name: getattr(part(), f.name) for f in fields(part) if f.name not in NO_LIMITS}
    limits = {name: shown(name, value) for name, value in defaults.items() if type(value) in (int, float)}
    assert {name: default for name, default in rows if name in limits} == limits
    assert len(rows) == len(dict(rows)), "one is there twice"


def test_no_document_has_a_limit_that_there_is_not() -> None:
    known = {f.name for part in PARTS for f in fields(part)}
    rows = re.findall(r"^\| `(\w+)` \| [\d.,]+[^|]* \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(rows) <= known


def test_the_document_has_the_limits_that_are_fixed() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    told = {words: limit for limit, words in re.findall(r"^\| ([\d,]+) \| (.+?) \|$", text, re.MULTILINE)}
    code = {
        "answered at once": connect_door.REQUESTS_MAX,
        "`request_id`": REQUEST_ID_LENGTH_MAX,
        "idempotency key": KEY_LENGTH_MAX,
        "values in": VALUES_MAX,
        "pieces of": FRAGMENTS_MAX,
        "wait for their turn": PIPELINE_MAX,
        "machines looked at": LOOKED_AT_MAX,
        "log-in links": LINKS_MAX,
    }
    for words, limit in code.items():
        assert [told[line] for line in told if words in line] == [f"{limit:,}"], words
    assert len(told) == len(code)
    assert f"the first {FREE_BYTES // KB} KB of each" in text


@pytest.mark.parametrize(
    "change",
    [
        {"port": 70_000},
        {"host": ""},
        {"public_url": "forge.example"},
        {"arriving_bytes_max": MB},
        *({name: 0} for name in ("header_seconds", "body_seconds", "upload_idle_seconds", "keep_alive_seconds", "quiet_seconds", "write_seconds")),
        *({name: 0} for name in ("header_bytes_max", "body_bytes_max", "stranger_body_bytes_max", "upload_bytes_max", "departing_bytes_max")),
        *({name: 0} for name in ("connections_max", "connections_per_address_max")),
    ],
)
def test_settings_that_cannot_be_are_refused(change: dict[str, Any]) -> None:
    check(ServerSettings())
    with pytest.raises(InvalidInput, match="settings of the server"):
        check(replace(ServerSettings(), **change))


# --- what they do --------------------------------------------------------------------------------------------------------------------


def client_of(running: Running) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=running.url, headers=running.headers, timeout=LONG_SECONDS)


async def busy(client: httpx2.AsyncClient) -> None:
    """A machine named m, in the middle of instruction 0."""
    await client.post("/v1/machine/new", json={"name": "m"})
    await client.post("/v1/machine/m/exec", json={"instruction": {"code": "hang()", "timeout_seconds": 60}})


STREAMS = [
    ("tape?follow=true", "application/x-ndjson", b" "),
    ("tape?follow=true", "text/event-stream", b": \n\n"),
    ("exec/0/stream-result", "*/*", b" "),
    ("exec/0/result", "*/*", b" "),
]


@pytest.mark.parametrize(("path", "accept", "sign"), STREAMS)
async def test_a_long_answer_shows_that_it_lives(path: str, accept: str, sign: bytes) -> None:
    async with service(replace(QUIET, quiet_seconds=0.05, early_seconds=0.05), quick(timeout_seconds=60.0)) as s, client_of(s) as client:
        await busy(client)
        found = b""
        async with asyncio.timeout(LONG_SECONDS), client.stream("GET", f"/v1/machine/m/{path}", headers={"Accept": accept}) as response:
            async for part in response.aiter_bytes():
                found += part
                if found.endswith(sign * 3):
                    break
        assert found.endswith(sign * 3)


async def test_a_long_answer_is_silent_for_as_long_as_it_may_be() -> None:
    async with service(replace(QUIET, quiet_seconds=LONG_SECONDS, early_seconds=0.05), quick(timeout_seconds=60.0)) as s, client_of(s) as client:
        await busy(client)
        async with client.stream("GET", "/v1/machine/m/exec/0/result") as response:
            parts = response.aiter_bytes()
            assert await anext(parts) == b" "
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(parts), 0.3)


async def test_a_wait_for_a_result_gets_its_headers_early_and_no_earlier() -> None:
    for early_seconds, is_early in ((0.05, True), (LONG_SECONDS, False)):
        async with service(replace(QUIET, early_seconds=early_seconds, stop_seconds=0.1), quick(timeout_seconds=60.0)) as s, client_of(s) as client:
            await busy(client)
            asking = asyncio.ensure_future(client.send(client.build_request("GET", "/v1/machine/m/exec/0/result"), stream=True))
            done, _ = await asyncio.wait([asking], timeout=LONG_SECONDS / 2 if is_early else 0.5)
            assert bool(done) == is_early
            asking.cancel()
            await asyncio.wait([asking])


async def test_an_upload_that_stands_still_is_given_up() -> None:
    async with service(replace(QUIET, upload_idle_seconds=0.2)) as s, client_of(s) as client:
        await client.post("/v1/machine/new", json={"name": "m"})

        async def slow() -> AsyncIterator[bytes]:
            for _ in range(4):
                yield b"x" * 100_000
                await asyncio.sleep(0.1)
            await asyncio.sleep(1.0)
            yield b"x"

        answer = await client.put("/v1/machine/m/files/x", content=slow())
        assert (answer.status_code, answer.json()["code"]) == (408, "TooSlow")
        assert (await client.get("/v1/machine/m/files")).json()["files"] == []


async def test_an_upload_has_an_end() -> None:
    async with service(replace(QUIET, upload_bytes_max=1000)) as s, client_of(s) as client:
        await client.post("/v1/machine/new", json={"name": "m"})

        async def in_pieces(size: int) -> AsyncIterator[bytes]:
            for _ in range(size // 100):
                yield b"x" * 100

        assert (await client.put("/v1/machine/m/files/x", content=b"x" * 1000)).status_code == 200
        assert (await client.put("/v1/machine/m/files/x", content=in_pieces(1000))).status_code == 200
        for content in (b"x" * 1001, in_pieces(1100)):
            answer = await client.put("/v1/machine/m/files/x", content=content)
            assert (answer.status_code, answer.json()["code"]) == (413, "TooLarge")


async def test_headers_and_bodies_have_the_sizes_that_are_set() -> None:
    settings = replace(QUIET, header_bytes_max=2_000, body_bytes_max=3_000, stranger_body_bytes_max=500, arriving_bytes_max=MB)
    async with service(settings) as s, client_of(s) as client:
        assert (await client.get("/healthz", headers={"X": "y" * 1_000})).status_code == 200
        assert (await client.get("/healthz", headers={"X": "y" * 5_000})).status_code == 431
        assert (await client.post("/v1/machine/list", content=b" " * 3_000)).status_code == 200
        assert (await client.post("/v1/machine/list", content=b" " * 3_001)).status_code == 413
        assert (await client.post("/internal/signup", content=b" " * 500)).status_code == 400
        assert (await client.post("/internal/signup", content=b" " * 501)).status_code == 413


async def test_pages_have_the_sizes_that_are_set() -> None:
    settings = replace(QUIET, list_machines_max=3, list_max=2, tape_entries_max=4)
    async with service(settings) as s, client_of(s) as client:
        for n in range(4):
            await client.post("/v1/machine/new", json={"name": f"m{n}"})
            await client.post("/v1/machine/m0/exec", json={"instruction": {"code": "print(1)"}})
        await client.get("/v1/machine/m0/exec/3/result")
        for path, size, items in (
            ("machine/list", 3, "machines"),
            ("machine/m0/files", 3, "files"),
            ("machine/m0/exec", 2, "instructions"),
            ("machine/m0/tape", 4, "entries"),
        ):
            page = (await client.get(f"/v1/{path}", params={"limit": size})).json()
            assert len(page[items]) == (0 if items == "files" else size)
            for limit in (0, size + 1):
                assert (await client.get(f"/v1/{path}", params={"limit": limit})).status_code == 400
        assert len((await client.get("/v1/machine/list")).json()["machines"]) == 3
        assert len((await client.get("/v1/machine/m0/tape")).json()["entries"]) == 4


async def test_a_page_of_a_tape_has_the_bytes_that_are_set() -> None:
    async with service(replace(QUIET, tape_bytes_max=5_000)) as s, client_of(s) as client:
        await client.post("/v1/machine/new", json={"name": "m"})
        for n in range(6):
            await client.post("/v1/machine/m/exec", json={"instruction": {"code": f"print('{n}' * 2000)"}})
            await client.get(f"/v1/machine/m/exec/{n}/result")
        pages, after, more = 0, -1, True
        while more:
            answer = await client.get("/v1/machine/m/tape", params={"after": after})
            assert len(answer.content) < 10_000
            after, more, pages = answer.json()["position"], answer.json()["more"], pages + 1
        assert pages >= 3


async def test_a_page_of_large_instructions_is_short_and_tells_of_the_next() -> None:
    async with service() as s, client_of(s) as client:
        await client.post("/v1/machine/new", json={"name": "m"})
        for n in range(5):
            await client.post("/v1/machine/m/exec", json={"instruction": {"code": "'x' * 700_000"}})
            await client.get(f"/v1/machine/m/exec/{n}/result")
        pages: list[list[int]] = []
        after: int | None = -1
        while after is not None:
            page = (await client.get("/v1/machine/m/exec", params={"after": after, "limit": 500})).json()
            assert all(len(found["result"]["value"]) > 700_000 for found in page["instructions"])
            pages.append([found["instruction_seq"] for found in page["instructions"]])
            after = page["next"]
        assert pages == [[0, 1], [2, 3], [4]]


async def test_requests_of_one_socket_are_answered_so_many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect_door, "REQUESTS_MAX", 3)
    begun, release = 0, asyncio.Event()

    async def slow(*_: Any, **__: Any) -> bool:
        nonlocal begun
        begun += 1
        await release.wait()
        return False

    monkeypatch.setattr(Machines, "interrupt", slow)
    async with service() as s, client_of(s) as client:
        await client.post("/v1/machine/new", json={"name": "m"})
        async with connect(f"{s.ws}/v1/machine/m/connect", additional_headers=s.headers) as socket:
            for n in range(5):
                await socket.send(f'{{"type":"interrupt","request_id":{n}}}')
            while begun < 3:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)
            assert begun == 3
            release.set()
            replies = 0
            while replies < 5:
                replies += '"reply"' in str(await asyncio.wait_for(socket.recv(), LONG_SECONDS))


async def test_a_server_that_stops_waits_for_answers_so_long_and_no_longer() -> None:
    async with service(replace(QUIET, early_seconds=LONG_SECONDS, stop_seconds=0.3), quick(timeout_seconds=60.0)) as s, client_of(s) as client:
        await busy(client)
        asking = asyncio.ensure_future(client.get("/v1/machine/m/exec/0/result"))
        await asyncio.sleep(0.2)
        began = time.monotonic()
    assert time.monotonic() - began < LONG_SECONDS / 2
    asking.cancel()
    await asyncio.wait([asking])
