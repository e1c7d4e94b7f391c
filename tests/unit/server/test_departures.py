"""Large answers under way: together they take so much memory, whoever reads them gets them whole, and nobody waits for those who do not."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest
from websockets.asyncio.client import connect

from everforge import AsyncEverforge
from everforge.server import answers, connections
from everforge.server.departures import Departures, size_of
from everforge.wire.errors import TooMany, TooSlow
from kit.background import in_background
from kit.house import quick
from kit.service import QUIET, Running, service
from kit.wild import PATIENCE_SECONDS, TEXT, Neighbour, Wild, frame, request

MB = 1024 * 1024
LARGE = 4_000_000
CROWD = 20
FEW = replace(QUIET, departing_bytes_max=20 * MB, write_seconds=PATIENCE_SECONDS)


@pytest.fixture
def running() -> Iterator[Running]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "LINGER_SECONDS", 0.3)
        with in_background(settings=FEW, machines=quick(timeout_seconds=60.0)) as running:
            yield running


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


# --- the room ---------------------------------------------------------------------------------------------------------------------------------------


async def test_who_may_be_refused_is_and_who_may_not_waits_in_order() -> None:
    departures = Departures(100)
    first = departures.take(60)
    with pytest.raises(TooMany):
        departures.take(60)
    second = asyncio.ensure_future(departures.room(60, PATIENCE_SECONDS))
    third = asyncio.ensure_future(departures.room(10, PATIENCE_SECONDS))
    await asyncio.sleep(0.01)
    assert not third.done()  # though there would be room for it
    with pytest.raises(TooMany):
        departures.take(10)
    first.end()
    (await second).end()
    (await third).end()
    assert departures.bytes == 0


async def test_what_waits_is_bounded_too() -> None:
    departures = Departures(100)
    first = departures.take(100)
    waiting = [asyncio.ensure_future(departures.room(100, PATIENCE_SECONDS)) for _ in range(4)]
    await asyncio.sleep(0.01)
    async with asyncio.timeout(PATIENCE_SECONDS / 2):
        with pytest.raises(TooSlow):
            await departures.room(1, PATIENCE_SECONDS)
    first.end()
    for each in waiting:
        (await each).end()
    assert departures.bytes == 0


async def test_who_goes_away_or_waited_long_enough_leaves_its_place() -> None:
    departures = Departures(100)
    first = departures.take(60)
    with pytest.raises(TooSlow):
        await departures.room(60, 0.01)
    gone = [asyncio.ensure_future(departures.room(60, PATIENCE_SECONDS)) for _ in range(2)]
    last = asyncio.ensure_future(departures.room(60, PATIENCE_SECONDS))
    await asyncio.sleep(0.01)
    gone[1].cancel()
    first.end()  # the first of them has its room now,
    gone[0].cancel()  # and goes away before it knows
    with await last:
        assert departures.bytes == 60
    assert departures.bytes == 0


async def test_what_is_larger_than_all_the_room_goes_alone() -> None:
    departures = Departures(100)
    with departures.take(500), pytest.raises(TooMany):
        departures.take(1)
    with departures.take(10), pytest.raises(TooMany):
        departures.take(500)


async def test_large_answers_are_made_one_in_each_turn_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, made = 0, list[int]()

    def to_json(value: object) -> bytes:
        made.append(turns)
        return b"{}"

    async def count() -> None:
        nonlocal turns
        while len(made) < 10:
            turns += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(answers, "to_json", to_json)
    departures = Departures(10 * MB)
    await asyncio.gather(count(), *(answers.departing(departures, "x" * 100_000) for _ in range(10)))
    assert len(set(made)) == 10


def test_the_size_of_an_answer_is_known_before_it_is_made() -> None:
    for value in ("x" * 1000, "é" * 1000, {"a": ["x" * 500, {"b": "x" * 500}]}):
        assert 1000 <= size_of(value) <= len(json.dumps(value))


# --- clients ------------------------------------------------------------------------------------------------------------------------------------------


def test_large_results_that_nobody_reads_take_so_much_memory_and_no_more(running: Running) -> None:
    neighbour, departures = Neighbour(running), running.service.departures
    assert neighbour.run(f"'x' * {LARGE}")["end"] == "value"
    with ExitStack() as many:
        for _ in range(CROWD):
            wild = many.enter_context(Wild(running, small=True))
            wild.send(request("GET", f"/v1/machine/{neighbour.name}/exec/1/result", running))
        until(lambda: departures.bytes > departures.bytes_max - LARGE - 1000)
        with Wild(running) as late:
            late.send(request("GET", f"/v1/machine/{neighbour.name}/exec/1/result", running))
            answer = late.answer()
            assert (answer.status, answer.json()["code"], answer.json()["retry"]) == (429, "TooMany", "later")
        neighbour.is_served()
        assert departures.bytes <= departures.bytes_max
    until(lambda: departures.bytes == 0)
    assert len(neighbour.run(f"'x' * {LARGE}")["value"]) > LARGE
    neighbour.close()


@pytest.mark.parametrize("kind", ["connect", "repl", "application/x-ndjson", "text/event-stream", "stream-result"])
def test_streams_of_large_results_that_nobody_reads_wait_for_room(running: Running, kind: str) -> None:
    neighbour, departures = Neighbour(running), running.service.departures
    code = f"'x' * {LARGE}"
    assert neighbour.run(code)["end"] == "value"
    most = 0
    with ExitStack() as many:
        for _ in range(CROWD):
            wild = many.enter_context(Wild(running, small=True))
            if kind in ("connect", "repl"):
                assert wild.upgrade(f"/v1/machine/{neighbour.name}/{kind}?after=-1").status == 101
            elif kind == "stream-result":
                wild.send(request("GET", f"/v1/machine/{neighbour.name}/exec/1/stream-result", running))
            else:
                wild.send(request("GET", f"/v1/machine/{neighbour.name}/tape?follow=true", running, Accept=kind))
            if kind == "repl":
                wild.send(frame(TEXT, b'{"type":"exec","instruction":{"code":"%s"}}' % code.encode()))
        until(lambda: running.service.streams.count == CROWD)
        until(lambda: departures.bytes > departures.bytes_max - 2 * LARGE - 1000)
        for _ in range(20):
            most = max(most, departures.bytes)
            time.sleep(0.02)
        neighbour.is_served()
    assert most <= departures.bytes_max + LARGE + 1000  # what is encoded takes room beside what it is made of
    until(lambda: departures.bytes == 0)
    until(lambda: running.service.streams.count == 0)
    assert len(neighbour.run(code)["value"]) > LARGE
    neighbour.close()


async def test_whoever_reads_gets_a_large_result_whole_in_every_way() -> None:
    text = "é\n" * 1_000_000
    async with service(replace(FEW, early_seconds=0.05), quick(timeout_seconds=60.0)) as s, AsyncEverforge(s.token, s.url) as forge:
        machine = await forge.create("m")
        assert (await machine.run("'é\\n' * 1_000_000")).value == repr(text)
        assert [found.result.value for found in [i async for i in machine.instructions()] if found.result] == [repr(text)]
        async with connect(f"{s.ws}/v1/machine/m/connect?after=-1", additional_headers=s.headers, max_size=None) as socket:
            while (found := json.loads(await socket.recv()))["type"] != "ended":
                pass
            assert found["value"] == repr(text)
        async with connect(f"{s.ws}/v1/machine/m/repl", additional_headers=s.headers, max_size=None) as socket:
            await socket.send(json.dumps({"type": "exec", "instruction": {"code": "'é\\n' * 1_000_000"}}))
            while (found := json.loads(await socket.recv()))["type"] != "result":
                pass
            assert found["result"]["value"] == repr(text)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while s.service.departures.bytes:
                await asyncio.sleep(0.01)
