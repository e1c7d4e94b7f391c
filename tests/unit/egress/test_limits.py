"""Byte and rate caps of one machine's door."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from dataclasses import replace

import pytest

from everforge.egress import door
from everforge.egress.limits import DAY_SECONDS, EgressLimits, Meter, OverLimit
from kit.doorway import Canned, doorway, request


def retry_after(said: bytes) -> int:
    [found] = re.findall(rb"(?i)\r\nretry-after: (\d+)\r\n", said)
    return int(found)


async def test_connections_have_a_burst_and_then_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    meter = Meter(EgressLimits(connections_per_second=2, connections_burst=3))
    for _ in range(3):
        meter.connect()
    with pytest.raises(OverLimit, match="2 connections a second"):
        meter.connect()
    now += 1.0
    meter.connect()
    meter.connect()
    with pytest.raises(OverLimit):
        meter.connect()


async def test_a_day_has_so_many_bytes_and_the_next_as_many_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    meter = Meter(EgressLimits(bytes_per_day=100, bytes_per_second=0))
    monkeypatch.setattr("time.monotonic", lambda: now)
    await meter.pass_bytes(100)
    now += 3 * 3600.0
    with pytest.raises(OverLimit, match=r"100 bytes a day .* there is room again in 21 hours") as over:
        await meter.pass_bytes(1)
    assert over.value.seconds == DAY_SECONDS - 3 * 3600
    now += over.value.seconds - 100
    with pytest.raises(OverLimit, match="in 100 seconds"):
        await meter.pass_bytes(1)
    now += 100
    await meter.pass_bytes(100)


async def test_bytes_wait_for_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("everforge.egress.limits.asyncio.sleep", sleep)
    meter = Meter(EgressLimits(bytes_per_second=1000))
    for _ in range(10):
        await meter.pass_bytes(100)
    assert 0.8 < waited[-1] < 1.0
    assert waited == sorted(waited)


async def test_without_limits_nothing_waits_and_nothing_is_refused() -> None:
    meter = Meter(EgressLimits(bytes_per_second=0, bytes_per_day=0, connections_per_second=0))
    async with asyncio.timeout(5):
        for _ in range(1000):
            meter.connect()
            await meter.pass_bytes(10**9)


async def test_a_machine_over_its_bytes_is_told_so_and_its_answers_are_cut() -> None:
    server = Canned(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + bytes(5000))
    async with doorway(server=server, bytes_per_day=3000) as d:
        assert len(await d.ask(request())) < 5000
        [attempt] = await d.notes.until_over()
        assert attempt.verdict == "failed"
        assert "3000 bytes a day" in attempt.why
        assert set(d.notes.limits_met) == {"egress_bytes_per_day"}
        said = await d.ask(request())
        assert said.startswith(b"HTTP/1.1 429"), said[:100]
        assert b"3000 bytes a day" in said
        assert b"there is room again in 24 hours" in said
        assert DAY_SECONDS - 60 < retry_after(said) <= DAY_SECONDS
        assert len(server.heard) == 1


async def test_a_machine_over_its_bytes_is_told_so_before_a_tunnel_begins() -> None:
    async with doorway(server=Canned(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + bytes(5000)), bytes_per_day=3000) as d:
        await d.ask(request())
        said = await d.ask(b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")
        assert said.startswith(b"HTTP/1.1 429 this machine may exchange 3000 bytes a day"), said[:100]
        assert DAY_SECONDS - 60 < retry_after(said) <= DAY_SECONDS
        assert len(d.far.dialled) == 1


async def test_a_machine_that_connects_too_often_is_told_so_and_it_is_on_the_record() -> None:
    async with doorway(server=Canned(), connections_burst=2, connections_per_second=1) as d:
        said = [await d.ask(request("http://example.com/", "Connection: close")) for _ in range(4)]
        assert [one.split()[1] for one in said][:2] == [b"200", b"200"]
        assert said[-1].startswith(b"HTTP/1.1 429")
        assert retry_after(said[-1]) == 1
        assert set(d.notes.limits_met) == {"egress_connections_per_second"}
        assert d.notes.attempts[-1].verdict == "refused"


async def test_what_is_no_request_counts_as_a_connection_and_a_flood_of_it_leaves_the_record_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "OVER_LIMIT_SECONDS", 0.0)
    async with doorway(server=Canned(), connections_burst=3, connections_per_second=1) as d:
        await d.ask(request("169.254.169.254:80", method="CONNECT"))
        for _ in range(40):
            await d.ask(b"x\r\n\r\n")
        assert len(d.notes.attempts) < 12, "one a second is let through, and one is told of those that are not"
        assert d.notes.attempts[0].host == "169.254.169.254"
        monkeypatch.setattr(door, "OVER_LIMIT_NOTED_SECONDS", 0.0)
        said = b""
        while not said.startswith(b"HTTP/1.1 429"):
            said = await d.ask(request("http://example.com/", "Connection: close"))
        assert re.search(r"began more; .* \(\d+ more before it were refused for such a reason\)$", d.notes.attempts[-1].why)


async def test_of_connections_beyond_the_most_at_once_one_is_on_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "CONVERSATIONS_MAX", 2)
    async with doorway(server=Canned()) as d, await d.connect(), await d.connect():
        while len(d.door._tasks) < 2:
            await asyncio.sleep(0.001)
        with suppress(OSError):  # cut at once, or a moment later
            assert await d.ask(request()) == b""
        [attempt] = await d.notes.until_over()
        assert (attempt.verdict, attempt.why) == ("refused", "this machine has 2 connections at once, which is the most")


async def test_all_machines_together_leave_the_server_descriptors_of_its_own() -> None:
    async with doorway(server=Canned()) as d, await d.connect():
        d.door._world = replace(d.door._world, conversations_max=1)
        while not d.door._tasks:
            await asyncio.sleep(0.001)
        with suppress(OSError):  # cut at once, or a moment later
            assert await d.ask(request()) == b""
        [attempt] = await d.notes.until_over()
        assert "the machines of this server have too many" in attempt.why
