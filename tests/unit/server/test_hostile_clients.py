"""Clients that take everything and give nothing back: slow ones, idle ones, many, and those who never read. Each is bounded, and no neighbour feels it."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace

import httpx2
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from everforge.machines.requests import NewMachine
from everforge.server import connections
from everforge.server.sockets import TOO_SLOW
from kit.background import in_background
from kit.house import quick
from kit.service import QUIET, Running, service
from kit.wild import PATIENCE_SECONDS, PING, TEXT, Neighbour, Wild, descriptors, frame, request, resident_bytes

MB = 1024 * 1024
CONNECTIONS_MAX = 1_200
IDLE_SOCKETS = 1_000
SHORT = replace(QUIET, header_seconds=0.5, body_seconds=0.5, write_seconds=0.5, connections_max=CONNECTIONS_MAX)


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "LINGER_SECONDS", 0.3)
        with in_background(settings=SHORT, machines=quick(timeout_seconds=60.0)) as running:
            yield running


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


# --- slow -----------------------------------------------------------------------------------------------------------------------------------------


def drip(wild: Wild, data: bytes) -> bytes:
    """A byte at a time, until the server has had enough: what it says then."""
    wild.socket.settimeout(0.05)
    for at in range(len(data)):
        try:
            wild.socket.send(data[at : at + 1])
            wild.buffer += wild.socket.recv(65_536)
            break
        except TimeoutError:
            continue
        except ConnectionError:
            break
    wild.socket.settimeout(PATIENCE_SECONDS)
    return wild.rest()


def test_headers_that_drip_are_shown_the_door(running: Running, neighbour: Neighbour) -> None:
    with Wild(running) as wild:
        assert drip(wild, b"GET /healthz HTTP/1.1\r\n" + b"X: y\r\n" * 1_000).startswith(b"HTTP/1.1 408")


def test_a_connection_that_says_nothing_is_shown_the_door(running: Running, neighbour: Neighbour) -> None:
    with Wild(running) as wild:
        assert wild.rest().startswith(b"HTTP/1.1 408")


def test_a_connection_that_says_nothing_more_is_closed() -> None:
    with in_background(settings=replace(SHORT, keep_alive_seconds=1.0)) as running, Wild(running) as wild:
        wild.send(request("GET", "/healthz"))
        assert wild.answer().status == 200
        assert wild.rest() == b""


def test_bodies_that_drip_are_shown_the_door(running: Running, neighbour: Neighbour) -> None:
    with Wild(running) as wild:
        wild.send(request("POST", "/v1/machine/list", running, Content_Length="100000"))
        assert drip(wild, b" " * 1_000).startswith(b"HTTP/1.1 408")
    with Wild(running) as wild:
        wild.send(request("POST", "/v1/machine/list", running, Transfer_Encoding="chunked"))
        assert drip(wild, b"1\r\n \r\n" * 1_000).startswith(b"HTTP/1.1 408")


def test_a_body_that_nobody_reads_does_not_hold_the_connection(running: Running, neighbour: Neighbour) -> None:
    with Wild(running) as wild:
        wild.send(request("GET", "/healthz", Content_Length="100000"))
        assert drip(wild, b" " * 1_000).startswith(b"HTTP/1.1 200")  # and then closed


def test_a_message_that_does_not_go_on_is_shown_the_door(running: Running, neighbour: Neighbour) -> None:
    for door in ("connect", "repl"):
        for part in (frame(TEXT, b"", last=False), frame(TEXT, b'{"type":', last=False), frame(TEXT, b'{"type":"ping","request_id":1}')[:-1]):
            with Wild(running) as wild:
                assert wild.upgrade(f"/v1/machine/{neighbour.name}/{door}").status == 101
                wild.send(part)
                assert wild.close_code() == TOO_SLOW


def test_a_socket_that_says_nothing_between_messages_is_left_alone(running: Running, neighbour: Neighbour) -> None:
    with Wild(running) as wild:
        assert wild.upgrade(f"/v1/machine/{neighbour.name}/connect").status == 101
        for number in range(3):
            wild.frame(TEXT, b'{"type":"ping",', last=False)
            wild.frame(0x0, b'"request_id":%d}' % number)
            wild.until(b'"request_id":%d}' % number)
            time.sleep(SHORT.body_seconds)


# --- many -----------------------------------------------------------------------------------------------------------------------------------------


def test_half_open_connections_up_to_the_limit_leave_those_who_are_there_unharmed(running: Running) -> None:
    neighbour = Neighbour(running)
    before = descriptors()
    with ExitStack() as many:
        for number in range(CONNECTIONS_MAX + 50):
            many.enter_context(Wild(running)).send(b"GET /healthz HTTP/1.1\r\nX: ")
            if number % 100 == 0:
                neighbour.is_served()
        neighbour.is_served()
        until(lambda: descriptors() <= before + CONNECTIONS_MAX + 60)  # theirs: the server has closed its ends
    neighbour.close()
    after = Neighbour(running)  # new ones are let in again
    after.close()
    until(lambda: descriptors() <= before + 10)


def test_one_connection_too_many_is_told_so(running: Running) -> None:
    with pytest.MonkeyPatch.context() as patch, in_background(settings=replace(SHORT, connections_max=3, header_seconds=30.0)) as small:
        patch.setattr(connections, "LINGER_SECONDS", 0.3)
        with ExitStack() as many:
            for _ in range(3):
                many.enter_context(Wild(small)).send(b"GET")
            with Wild(small) as last:
                answer = last.answer()
                assert (answer.status, answer.json()["retry"], answer.headers["retry-after"]) == (503, "later", "5")
        until(lambda: _is_let_in(small))


def test_one_address_has_so_many_connections_and_others_are_unharmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LINGER_SECONDS", 0.3)
    with in_background(settings=replace(SHORT, connections_per_address_max=3, header_seconds=30.0)) as small:
        name = "there"
        with httpx2.Client(base_url=small.url, headers=small.headers) as client:
            client.post("/v1/machine/new", json={"name": name}).raise_for_status()
        with ExitStack() as many:
            for _ in range(2):
                many.enter_context(Wild(small)).send(b"GET")
            assert many.enter_context(Wild(small)).upgrade(f"/v1/machine/{name}/connect").status == 101  # it counts as well
            with Wild(small) as last:
                answer = last.answer()
                assert (answer.status, answer.json()["code"]) == (503, "TooMany")
                assert "this address" in answer.json()["message"]
            with socket.create_connection(("127.0.0.1", int(small.url.rpartition(":")[2])), source_address=("127.0.0.2", 0)) as other:
                other.sendall(request("GET", "/healthz", Connection="close"))
                assert other.recv(65_536).startswith(b"HTTP/1.1 200")
        for _ in range(5):  # those who left, in whichever way, are not counted any more
            until(lambda: _is_let_in(small))
            with Wild(small) as wild:
                assert wild.upgrade(f"/v1/machine/{name}/connect").status == 101


def _is_let_in(running: Running) -> bool:
    with Wild(running) as wild:
        wild.send(request("GET", "/healthz"))
        return wild.answer().status == 200


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_thousand_idle_websockets_are_cheap(running: Running, neighbour: Neighbour) -> None:
    before, open_before = resident_bytes(), descriptors()
    with ExitStack() as many:
        for number in range(IDLE_SOCKETS):
            wild = many.enter_context(Wild(running))
            assert wild.upgrade(f"/v1/machine/{neighbour.name}/{('connect', 'repl')[number % 2]}").status == 101
        until(lambda: running.service.streams.count == IDLE_SOCKETS)
        neighbour.is_served()
        assert (resident_bytes() - before) / IDLE_SOCKETS < 150_000  # both ends of it
    until(lambda: running.service.streams.count == 0)
    until(lambda: descriptors() <= open_before + 10)


def test_an_account_has_so_many_streams_and_no_more() -> None:
    with in_background(settings=replace(QUIET, streams_per_account_max=3)) as running:
        neighbour = Neighbour(running)
        with ExitStack() as many:
            for _ in range(3):
                assert many.enter_context(Wild(running)).upgrade(f"/v1/machine/{neighbour.name}/connect").status == 101
            until(lambda: running.service.streams.count == 3)
            with Wild(running) as wild:
                assert wild.upgrade(f"/v1/machine/{neighbour.name}/connect").status == 429
            with Wild(running) as wild:
                wild.send(request("GET", f"/v1/machine/{neighbour.name}/tape?follow=true", running, Accept="application/x-ndjson"))
                answer = wild.answer()
                assert (answer.status, answer.json()["code"]) == (429, "TooManyStreams")
        until(lambda: running.service.streams.count == 0)
        neighbour.is_served()
        neighbour.close()


FULL = replace(QUIET, arriving_bytes_max=9 * MB, body_seconds=PATIENCE_SECONDS)  # one large body and a little more


@pytest.fixture
def full() -> Iterator[Running]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "LINGER_SECONDS", 0.3)
        with in_background(settings=FULL) as running:
            yield running


def test_bodies_under_way_together_take_so_much_memory_and_no_more(full: Running) -> None:
    neighbour = Neighbour(full)
    with Wild(full) as first:
        first.send(request("POST", "/v1/machine/list", full, Content_Length=str(8 * MB)) + b" " * (8 * MB - 1))
        until(lambda: full.service.arrivals.bytes > 7 * MB)
        with Wild(full) as second:
            second.send(request("POST", "/v1/machine/list", full, b" " * 2 * MB))
            answer = second.answer()
            assert (answer.status, answer.json()["code"], answer.json()["retry"]) == (429, "TooMany", "later")
        with Wild(full) as third:
            assert third.upgrade(f"/v1/machine/{neighbour.name}/connect").status == 101
            third.send(frame(TEXT, b" " * 2 * MB)[:-1])
            assert third.close_code() == 1013
        neighbour.is_served()  # little is always taken
        first.send(b" ")
        assert first.answer().status == 200
    until(lambda: full.service.arrivals.bytes == 0)
    neighbour.close()


def test_messages_that_go_away_unfinished_or_are_taken_leave_their_room_to_others(full: Running) -> None:
    neighbour = Neighbour(full)
    for sent in (frame(TEXT, b" " * 7 * MB)[:-1], frame(TEXT, b" " * 7 * MB, last=False)):
        with Wild(full) as wild:
            assert wild.upgrade(f"/v1/machine/{neighbour.name}/connect").status == 101
            wild.send(sent)
            until(lambda: full.service.arrivals.bytes > 6 * MB)
        until(lambda: full.service.arrivals.bytes == 0)
    with Wild(full) as wild:
        assert wild.upgrade(f"/v1/machine/{neighbour.name}/connect").status == 101
        wild.frame(TEXT, b'{"type":"ping","request_id":1' + b" " * 7 * MB + b"}")
        wild.until(b'"reply","request_id":1')
        assert full.service.arrivals.bytes == 0
    neighbour.close()


# --- those who never read ---------------------------------------------------------------------------------------------------------------------------


WRITERS = 40
PRINT = "tell(*(f'{number:0200}' for number in range(1000)))"  # together twice what the kernel holds for one connection
READERS = 10


@pytest.mark.parametrize("kind", ["application/x-ndjson", "text/event-stream", "connect", "repl"])
def test_a_stream_that_nobody_reads_is_bounded_and_cut(running: Running, neighbour: Neighbour, kind: str) -> None:
    for _ in range(0 if kind == "repl" else WRITERS):
        assert neighbour.run(PRINT)["end"] == "value"
    before = resident_bytes()
    with ExitStack() as many:
        for _ in range(1 if kind == "repl" else READERS):
            wild = many.enter_context(Wild(running, small=True))
            if "/" in kind:
                wild.send(request("GET", f"/v1/machine/{neighbour.name}/tape?follow=true", running, Accept=kind))
            else:
                assert wild.upgrade(f"/v1/machine/{neighbour.name}/{kind}?after=-1").status == 101
            if kind == "repl":
                wild.send(frame(TEXT, b'{"type":"exec","instruction":{"code":"%s"}}' % PRINT.encode()) * WRITERS)
        until(lambda: running.service.streams.count > 0)
        neighbour.is_served()
        until(lambda: running.service.streams.count == 0)  # though all of them are still there
        assert resident_bytes() - before < 40 * MB  # of 80 for all of them, were it held


def test_large_results_that_nobody_takes_are_given_up(running: Running, neighbour: Neighbour) -> None:
    assert neighbour.run("'x' * 4_000_000")["end"] == "value"
    before = descriptors()
    with ExitStack() as many:
        for _ in range(READERS):
            wild = many.enter_context(Wild(running, small=True))
            wild.send(request("GET", f"/v1/machine/{neighbour.name}/exec/1/result", running) * 5)
        neighbour.is_served()
        until(lambda: descriptors() <= before + READERS + 3)  # the server's ends are closed


def test_pings_without_end_to_somebody_who_never_reads_the_answers_are_bounded() -> None:
    with in_background(settings=replace(SHORT, write_seconds=PATIENCE_SECONDS)) as patient:
        neighbour = Neighbour(patient)
        with Wild(patient, small=True) as wild:
            assert wild.upgrade(f"/v1/machine/{neighbour.name}/connect").status == 101
            assert wild.pour(frame(PING, b"x" * 125) * 1_000, 128 * MB) < 64 * MB
            neighbour.is_served()
        neighbour.close()


@pytest.mark.parametrize("message", [b'{"type":"ping","request_id":"%s"}' % (b"x" * 200), b'{"type":"exec","instruction":{"code":5},"request_id":1}'])
def test_requests_without_end_from_somebody_who_never_reads_the_replies_are_bounded(running: Running, neighbour: Neighbour, message: bytes) -> None:
    before = resident_bytes()
    with Wild(running, small=True) as wild:
        assert wild.upgrade(f"/v1/machine/{neighbour.name}/connect").status == 101
        assert wild.pour(frame(TEXT, message) * 1_000, 256 * MB) < 64 * MB
        neighbour.is_served()
        until(lambda: running.service.streams.count == 0)
    assert resident_bytes() - before < 100 * MB


# --- ends -----------------------------------------------------------------------------------------------------------------------------------------


async def test_a_server_with_a_hundred_streams_stops_at_once() -> None:
    patient = replace(QUIET, stop_seconds=PATIENCE_SECONDS)
    async with AsyncExitStack() as clients:
        async with AsyncExitStack() as server:
            running = await server.enter_async_context(service(patient, quick(timeout_seconds=PATIENCE_SECONDS)))
            name = (await running.machines.create(NewMachine(name="busy"))).record.name
            await running.machines.exec(name, "hang()")
            client = await clients.enter_async_context(
                httpx2.AsyncClient(base_url=running.url, headers=running.headers, timeout=None, limits=httpx2.Limits(max_connections=200))
            )
            paths = ["tape?follow=true", "exec/0/stream-result", "exec/0/result"]
            for path in paths * 25:
                stream = client.stream("GET", f"/v1/machine/{name}/{path}", headers={"Accept": "application/x-ndjson"})
                assert (await clients.enter_async_context(stream)).status_code == 200
            sockets = [
                await clients.enter_async_context(connect(f"{running.ws}/v1/machine/{name}/connect", additional_headers=running.headers))
                for _ in range(25)
            ]
            began = time.monotonic()
        assert time.monotonic() - began < patient.stop_seconds / 2  # it did not wait for them
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                await sockets[0].recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1012


async def test_a_revoked_token_closes_its_streams_while_the_instruction_goes_on() -> None:
    async with AsyncExitStack() as undo:
        running = await undo.enter_async_context(service(machines=quick(timeout_seconds=PATIENCE_SECONDS)))
        await running.machines.create(NewMachine(name="busy"))
        await running.machines.exec("busy", "sleep(0.5)\n'done'")
        owner = await running.accounts.identify(running.token)
        made = await running.accounts.new_token(owner)
        headers = {"Authorization": f"Bearer {made.token}"}
        await running.machines.exec("busy", "hang()")
        client = await undo.enter_async_context(httpx2.AsyncClient(base_url=running.url, headers=headers, timeout=None))
        sockets = [
            await undo.enter_async_context(connect(f"{running.ws}/v1/machine/busy/{door}", additional_headers=headers))
            for door in ("connect", "repl")
        ]
        answers = [asyncio.ensure_future(_drained(client, path)) for path in ("tape?follow=true", "exec/1/stream-result", "exec/1/result")]
        closes = [asyncio.ensure_future(_closed(socket)) for socket in sockets]
        while running.service.streams.count < len(answers) + len(closes):
            await asyncio.sleep(0.01)
        await running.accounts.revoke(owner, made.record.id)
        async with asyncio.timeout(PATIENCE_SECONDS / 2):
            assert await asyncio.gather(*closes) == [4001, 4001]
            assert await asyncio.gather(*answers) == ["whole", "whole", "cut"]
        assert (await running.machines.get("busy")).pending >= 1
        assert running.service.streams.count == 0


async def _drained(client: httpx2.AsyncClient, path: str) -> str:
    try:
        async with client.stream("GET", f"/v1/machine/busy/{path}", headers={"Accept": "application/x-ndjson"}) as response:
            async for _ in response.aiter_bytes():
                pass
    except httpx2.HTTPError:
        return "cut"
    return "whole"


async def _closed(socket: ClientConnection) -> int | None:
    try:
        while True:
            await socket.recv()
    except ConnectionClosed as e:
        return e.rcvd.code if e.rcvd else None
