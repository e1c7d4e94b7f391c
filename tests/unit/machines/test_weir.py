"""What is left of a server beside machines that say too much, by a clock that the test sets."""

from __future__ import annotations

import asyncio
import heapq
from collections import defaultdict

import pytest

from everforge.machines.weir import (
    AWAITED_SHARE,
    FREE_SECONDS,
    FREE_SHARE,
    LARGE_AWAITED_SHARE,
    LARGE_FREE_SECONDS,
    LARGE_SHARE,
    SHARE,
    WANTED_SECONDS,
    Flow,
    Weir,
)
from everforge.wire.ids import MachineId

FLOOD, OTHER, CALM = MachineId("m-flood"), MachineId("m-other"), MachineId("m-calm")
PART = 0.002  # what one part of a flood takes


class Time:
    """Goes by when all sleep: at once where nobody else is there, or to the first who wakes."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.taken: defaultdict[Flow, float] = defaultdict(float)  # seconds of the server
        self.sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self.is_shared = False

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        if not self.is_shared:
            self.now += seconds
            return
        waking: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self.sleepers, (self.now + seconds, id(waking), waking))
        await waking

    async def pass_on(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)  # everybody comes as far as they can
        at, _, waking = heapq.heappop(self.sleepers)
        self.now = max(self.now, at)
        waking.set_result(None)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def weir(time: Time) -> Weir:
    return Weir(time.clock, time.sleep)


async def said(flow: Flow, time: Time, took_seconds: float, part_seconds: float = PART) -> float:
    """The machine says what takes so long in all. How long it was held."""
    before = flow.held_seconds
    for _ in range(round(took_seconds / part_seconds)):
        time.now += part_seconds
        time.taken[flow] += part_seconds
        await flow.passed(part_seconds)
    return flow.held_seconds - before


async def test_a_flood_has_its_share_of_a_server_that_others_want(time: Time, weir: Weir) -> None:
    weir.ask(CALM)
    flow, began = Flow(weir, FLOOD), time.now
    await said(flow, time, 0.5)
    assert pytest.approx(SHARE * (time.now - began), rel=0.3) == 0.5 - FREE_SECONDS


async def test_several_floods_share_one_share(time: Time, weir: Weir) -> None:
    weir.ask(CALM)
    time.is_shared = True
    flows, began, took = [Flow(weir, MachineId(f"m-{n}")) for n in range(10)], time.now, 0.0
    held = {asyncio.ensure_future(said(flow, time, 1.0)) for flow in flows}
    try:
        while time.now < began + 20:
            weir.ask(CALM)
            await time.pass_on()
        took = sum(time.taken.values())
    finally:
        for task in held:
            task.cancel()
        await asyncio.wait(held)
    assert took - len(flows) * FREE_SECONDS <= 1.3 * (SHARE + FREE_SHARE) * (time.now - began)
    assert max(time.taken.values()) < 1.5 * min(time.taken.values()), "and each has as much of it as the others"


async def test_nobody_waits_on_a_server_that_has_nothing_else_to_do(time: Time, weir: Weir) -> None:
    flow = Flow(weir, FLOOD)
    assert await said(flow, time, 1.0) == 0
    weir.ask(FLOOD)
    weir.ask(FLOOD)
    assert await said(flow, time, 1.0) == 0, "its own instructions are nobody else's"


async def test_whoever_was_asked_for_something_is_remembered_for_a_while_whoever_came_after(time: Time, weir: Weir) -> None:
    for machine in (OTHER, CALM, FLOOD):
        weir.ask(machine)
    assert weir.is_wanted(but=FLOOD)
    time.now += WANTED_SECONDS
    weir.ask(FLOOD)
    assert not weir.is_wanted(but=FLOOD)
    assert weir.is_wanted(but=CALM)


async def test_what_people_print_is_no_flood(time: Time, weir: Weir) -> None:
    weir.ask(CALM)
    flow = Flow(weir, FLOOD)
    assert await said(flow, time, FREE_SECONDS) == 0
    for _ in range(100):
        time.now += PART / FREE_SHARE
        assert await said(flow, time, PART) == 0


async def test_a_flood_that_was_free_is_held_as_soon_as_somebody_is_asked_for_something(time: Time, weir: Weir) -> None:
    flow = Flow(weir, FLOOD)
    assert await said(flow, time, 3.0) == 0
    weir.ask(CALM)
    assert await said(flow, time, PART) == pytest.approx(PART * (1 / SHARE - 1)), "for what it says from now on, not for all that it has said"


async def test_large_messages_have_a_smaller_share_and_the_first_comes_at_once(time: Time, weir: Weir) -> None:
    weir.ask(CALM)
    flow, began = Flow(weir, FLOOD), time.now
    await flow.before_large()
    assert flow.held_seconds == 0
    for _ in range(20):
        flow.passed_large(0.2)
        weir.ask(CALM)
        await flow.before_large()
    assert pytest.approx(LARGE_SHARE * (time.now - began), rel=0.1) == 20 * 0.2 - LARGE_FREE_SECONDS


async def test_time_for_which_it_is_not_listened_to_counts_while_it_lasts_and_when_it_is_cut_short() -> None:
    weir = Weir()
    weir.ask(CALM)
    flow = Flow(weir, FLOOD)
    held = asyncio.ensure_future(flow.passed(10.0))
    await asyncio.sleep(0.05)
    assert flow.held_seconds > 0
    held.cancel()
    await asyncio.wait([held])
    total = flow.held_seconds
    await asyncio.sleep(0.01)
    assert flow.held_seconds == total > 0


async def test_who_is_waited_for_is_held_for_less_and_no_longer_than_that(time: Time, weir: Weir) -> None:
    weir.ask(CALM)
    flow = Flow(weir, FLOOD)
    await said(flow, time, FREE_SECONDS)
    flow.await_answer(20.0)
    assert await said(flow, time, PART) == pytest.approx(PART * (1 / AWAITED_SHARE - 1))
    flow.passed_large(1.0)
    assert flow.held_seconds < 0.1
    await flow.before_large()
    assert flow.held_seconds == pytest.approx((1.0 - LARGE_FREE_SECONDS) / LARGE_AWAITED_SHARE, rel=0.1)
    for _ in range(5):
        before = flow.held_seconds
        weir.ask(CALM)
        flow.await_answer(20.0)
        flow.passed_large(0.2)
        await flow.before_large()
        assert flow.held_seconds - before == pytest.approx(0.2 / LARGE_AWAITED_SHARE, rel=0.1), "each pays for itself, and not again for the others"
    flow.answered()
    weir.ask(CALM)
    assert await said(flow, time, FREE_SECONDS + PART) >= PART * (1 / SHARE - 1)


async def test_who_is_held_is_let_go_soon_when_somebody_begins_to_wait() -> None:
    weir = Weir()
    weir.ask(CALM)
    flow = Flow(weir, FLOOD)
    held = asyncio.ensure_future(flow.passed(0.1))  # for a second
    await asyncio.sleep(0)
    flow.await_answer(10.0)
    async with asyncio.timeout(0.8):
        await held
