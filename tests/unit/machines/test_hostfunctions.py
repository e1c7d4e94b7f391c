"""Instructions that call functions of the client's program: they wait, sleep, are moved and end as they should."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from everforge.machines.guestline import GuestLine
from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines, Running
from everforge.store.base import Change
from everforge.wire.errors import EverforgeError, InstructionNotFound, InvalidInput, WrongState
from everforge.wire.events import Answered, Called, Ended, Event, Moved
from everforge.wire.messages import CALL_BYTES_MAX, CALLS_BYTES_MAX, CALLS_MAX, CALLS_OPEN_MAX, Answer, Call, CallDropped, Frozen, GuestMessage
from kit.house import House, quick

TWICE = "print('before')\nx = ask(1, key='a')\nprint('between')\ny = ask(x)\n(x, y)"


async def begin(machines: Machines, code: str = "ask('who?')", name: str = "m", **options: Any) -> int:
    number, _ = await machines.exec(name, code, functions=["ask"], **options)
    return number


async def machine(house: House, **wanted: Any) -> Machines:
    await house.machines.create(NewMachine(name="m", **wanted))
    return house.machines


async def called(machines: Machines, instruction: int, call: int = 0, name: str = "m") -> Called:
    async with asyncio.timeout(5):
        async for event in machines.read(name, follow=True):
            if isinstance(event, Called) and (event.instruction, event.call) == (instruction, call):
                return event
    raise AssertionError


async def moved(machines: Machines, what: str, name: str = "m", times: int = 1) -> None:
    async with asyncio.timeout(5):
        async for event in machines.read(name, follow=True):
            if isinstance(event, Moved) and event.event == what:
                times -= 1
                if not times:
                    return


async def result(machines: Machines, instruction: int, name: str = "m") -> Ended:
    async with asyncio.timeout(5):
        return await machines.result(name, instruction)


async def tape(machines: Machines, name: str = "m") -> Sequence[Event]:
    return [event async for event in machines.read(name)]


async def state(machines: Machines) -> str:
    return (await machines.get("m")).state


async def test_a_call_is_on_the_tape_and_its_answer_comes_back(house: House) -> None:
    machines = await machine(house)
    number = await begin(machines, TWICE)
    first = await called(machines, number)
    assert (first.function, first.args, first.kwargs) == ("ask", [1], {"key": "a"})
    assert await state(machines) == "busy"
    await machines.answer("m", number, 0, value={"n": 2})
    await called(machines, number, 1)
    await machines.answer("m", number, 1, value=None)
    assert (await result(machines, number)).value == "({'n': 2}, None)"
    kinds = [e.kind for e in await tape(machines) if e.kind != "moved"]
    assert kinds == ["accepted", "output", "called", "answered", "output", "called", "answered", "ended"]
    assert await state(machines) == "ready"


async def test_an_error_is_raised_in_the_machine(house: House) -> None:
    machines = await machine(house)
    number = await begin(machines)
    await called(machines, number)
    await machines.answer("m", number, 0, error="nobody is in")
    assert (await result(machines, number)).error == "HostFunctionError: nobody is in"


async def test_a_call_is_answered_once_by_whoever_comes_first(house: House) -> None:
    machines = await machine(house)
    number = await begin(machines)
    await called(machines, number)
    answers = await asyncio.gather(*(machines.answer("m", number, 0, value=n) for n in range(5)), return_exceptions=True)
    refused = [a for a in answers if a is not None]
    assert [type(a) for a in refused] == [WrongState] * 4
    assert (await result(machines, number)).value == str(answers.index(None))
    with pytest.raises(WrongState, match="ended"):
        await machines.answer("m", number, 0, value=1)


async def test_what_is_no_answer_is_refused_and_the_call_still_waits(house: House) -> None:
    machines = await machine(house)
    number = await begin(machines)
    await called(machines, number)
    wrong: list[dict[str, Any]] = [
        {"value": object()},
        {"value": float("nan")},
        {"value": "x" * CALL_BYTES_MAX},
        {"error": 5},
        {"value": 1, "error": "x"},
    ]
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    for answer in [*wrong, {"value": deep}]:
        with pytest.raises(InvalidInput):
            await machines.answer("m", number, 0, **answer)
    with pytest.raises(WrongState):
        await machines.answer("m", number, 1, value=1)
    with pytest.raises(InstructionNotFound):
        await machines.answer("m", number + 1, 0, value=1)
    for position in ((-1, 0), (0, -1), ("0", 0)):
        with pytest.raises(InvalidInput):
            await machines.answer("m", *position, value=1)  # pyright: ignore[reportArgumentType]
    await machines.answer("m", number, 0, value="right")
    assert (await result(machines, number)).value == "'right'"


async def test_an_answer_survives_a_power_cut_before_the_client_hears_that_it_was_taken(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    machines = await machine(house)
    number = await begin(machines)
    await called(machines, number)
    commit, answers = house.store.commit, list[Change]()

    async def watched(change: Change) -> Sequence[Event]:
        answers.extend([change] if any(isinstance(e, Answered) for e in change.events) else [])
        return await commit(change)

    monkeypatch.setattr(house.store, "commit", watched)
    await machines.answer("m", number, 0, value=1)
    assert [change.durable for change in answers] == [True]


async def test_an_instruction_without_functions_has_no_calls_to_answer(house: House) -> None:
    machines = await machine(house)
    number, _ = await machines.exec("m", "hang()")
    with pytest.raises(WrongState):
        await machines.answer("m", number, 0, value=1)
    await machines.interrupt("m")


async def test_waiting_counts_in_no_timeout_but_running_does(house: House) -> None:
    machines = await machine(house)
    number = await begin(machines, "x = ask()\nhang()", timeout_seconds=0.2)
    await called(machines, number)
    await asyncio.sleep(0.3)  # longer than the whole timeout
    assert await state(machines) == "busy"
    await machines.answer("m", number, 0, value=1)
    assert (await result(machines, number)).end == "timed_out"


async def test_a_waiting_machine_sleeps_and_the_answer_wakes_it(house: House) -> None:
    machines = await machine(house, idle_seconds=0.02)
    number = await begin(machines, "kept = 5\nx = ask()\n(kept, x)")
    await machines.exec("m", "1")  # what stands behind it cannot run, and keeps nobody awake
    await moved(machines, "sleep_recorded")
    assert await state(machines) == "asleep"
    assert (await machines.get("m")).pending == 2
    assert machines.running("m") == Running(number, waits=True)
    await machines.answer("m", number, 0, value="morning")
    assert (await result(machines, number)).value == "(5, 'morning')"
    assert (await machines.run("m", "kept")).value == "5"


async def test_instructions_behind_it_wait_also_in_a_sleeping_machine(house: House) -> None:
    machines = await machine(house)
    number = await begin(machines, "x = ask()\nx")
    await called(machines, number)
    await machines.hibernate("m")
    behind, _ = await machines.exec("m", "x + 1")
    await asyncio.sleep(0.02)
    assert await state(machines) == "asleep"
    await machines.answer("m", number, 0, value=1)
    assert (await result(machines, behind)).value == "2"
    assert (await result(machines, number)).value == "1"


@pytest.mark.parametrize("asleep", [False, True])
@pytest.mark.parametrize("answered", ["before", "after"])
async def test_a_restart_of_the_server_loses_neither_call_nor_answer(house: House, asleep: bool, answered: str) -> None:
    machines = await machine(house)
    number = await begin(machines, "runs = globals().get('runs', 0) + 1\nx = ask()\n(runs, x)")
    await called(machines, number)
    if asleep:
        await machines.hibernate("m")
    if answered == "before":
        await _answer_on_the_tape_only(house, number)
    machines = await house.restart()
    if answered == "after":
        await machines.answer("m", number, 0, value="told")
    else:
        with pytest.raises(EverforgeError):
            await machines.answer("m", number, 0, value="again")
    assert (await result(machines, number)).value == "(1, 'told')"
    assert len([e for e in await tape(machines) if isinstance(e, Answered)]) == 1


async def _answer_on_the_tape_only(house: House, number: int) -> None:
    """As if the server died between the write and the delivery."""
    keeper = house.machines.forge.kept(house.machines.account, "m")
    assert keeper is not None
    keeper.answers.deliver_at = float("inf")
    await house.machines.answer("m", number, 0, value="told")


async def test_an_interrupt_ends_it_awake_or_asleep(house: House) -> None:
    machines = await machine(house)
    number = await begin(machines)
    await called(machines, number)
    assert await machines.interrupt("m")
    assert (await result(machines, number)).end == "interrupted"
    number = await begin(machines, "kept = 1\nask()")
    await called(machines, number)
    await machines.hibernate("m")
    assert await machines.interrupt("m")
    assert (await result(machines, number)).end == "interrupted"
    assert (await machines.run("m", "kept")).value == "1"  # and its interpreter is free
    with pytest.raises(WrongState):
        await machines.answer("m", number, 0, value=1)


@pytest.mark.parametrize("asleep", [False, True])
async def test_going_back_ends_it_as_cancelled_and_can_be_undone_without_it(house: House, asleep: bool) -> None:
    machines = await machine(house)
    await machines.run("m", "kept = 1")
    await machines.snapshot("m", "good")
    number = await begin(machines, "kept = 2\nask()")
    await called(machines, number)
    behind, _ = await machines.exec("m", "1")
    await machines.interrupt("m", pending=True)
    assert (await result(machines, behind)).end == "interrupted"
    number = await begin(machines, "kept = 3\nask()")
    await called(machines, number)
    if asleep:
        await machines.hibernate("m")
    undo = (await machines.rollback("m", snapshot="good")).undo
    ended = await result(machines, number)
    assert (ended.end, "rolled back" in (ended.error or "")) == ("cancelled", True)
    assert (await machines.run("m", "kept")).value == "1"
    assert undo is not None
    await machines.rollback("m", snapshot=undo)
    assert (await machines.run("m", "kept")).value == "3"


async def test_a_reset_ends_it(house: House) -> None:
    machines = await machine(house)
    number = await begin(machines)
    await called(machines, number)
    await machines.reset("m")
    assert (await result(machines, number)).end == "cancelled"
    assert (await machines.run("m", "1")).value == "1"


async def test_a_delete_ends_it(house: House) -> None:
    machines = await machine(house)
    number = await begin(machines)
    await called(machines, number)
    waiting = asyncio.ensure_future(result(machines, number))
    await asyncio.sleep(0)
    await machines.delete("m")
    assert (await waiting).end == "cancelled"
    await house.check_nothing_leaked()


@pytest.mark.parametrize("asleep", [False, True])
async def test_a_fork_is_free_and_its_source_goes_on(house: House, asleep: bool) -> None:
    machines = await machine(house)
    number = await begin(machines, "kept = 7\nx = ask()\nx")
    await called(machines, number)
    if asleep:
        await machines.hibernate("m")
    await machines.fork("m", names=["copy"])
    copied = await machines.result("copy", number)
    assert (copied.end, "forked" in (copied.error or "")) == ("cancelled", True)
    assert (await machines.run("copy", "kept")).value == "7"
    assert [e.detail for e in await tape(machines, "copy") if isinstance(e, Moved) and e.event == "let_go"] == [{"instruction": number}]
    with pytest.raises(WrongState):
        await machines.answer("copy", number, 0, value="wrong one")
    await machines.answer("m", number, 0, value="right one")
    assert (await result(machines, number)).value == "'right one'"


async def test_a_snapshot_while_it_waits_can_be_gone_back_to_later(house: House) -> None:
    machines = await machine(house)
    number = await begin(machines, "kept = 1\nx = ask()\nkept = 2")
    await called(machines, number)
    await machines.snapshot("m", "middle")
    await machines.answer("m", number, 0, value=1)
    assert (await result(machines, number)).end == "value"
    await machines.rollback("m", snapshot="middle")
    assert (await machines.run("m", "kept")).value == "1"
    machines = await house.restart()
    assert (await machines.run("m", "kept")).value == "1"


async def test_files_and_completion_reach_a_machine_that_sleeps_while_it_waits(house: House) -> None:
    machines = await machine(house)
    number = await begin(machines, "x = ask()\nx")
    await called(machines, number)
    await machines.hibernate("m")
    behind, _ = await machines.exec("m", "x")
    async with asyncio.timeout(5):
        assert (await machines.complete("m", "ke")).busy
    await machines.answer("m", number, 0, value=4)
    assert (await result(machines, behind)).value == "4"


async def test_a_lost_sandbox_ends_it_as_lost_and_it_never_runs_again(house: House) -> None:
    machines = await machine(house)
    await machines.run("m", "runs = 0")
    await machines.hibernate("m")
    number = await begin(machines, "runs += 1\nask()")
    await called(machines, number)
    house.host.lose_everything()
    assert (await result(machines, number)).end == "lost"
    with pytest.raises(WrongState):
        await machines.answer("m", number, 0, value=1)
    assert (await machines.run("m", "runs")).value == "0"


async def test_memory_that_was_lost_behind_a_sleep_does_not_bring_the_instruction_back(house: House) -> None:
    machines = await machine(house)
    number = await begin(machines, "kept = 1\nx = ask()\nkept = 2\nhang()")
    await called(machines, number)
    await machines.hibernate("m")
    await machines.answer("m", number, 0, value=1)
    await moved(machines, "woken")
    house.host.lose_everything()
    assert (await result(machines, number)).end == "lost"
    assert (await machines.run("m", "kept")).value == "1"


async def test_an_orderly_stop_puts_it_to_sleep_with_its_machine(house: House) -> None:
    machines = await machine(house)
    number = await begin(machines, "x = ask()\nx")
    await called(machines, number)
    assert await machines.forge.stop() == []
    machines = await house.start()
    assert await state(machines) == "asleep"
    await machines.answer("m", number, 0, value="next day")
    assert (await result(machines, number)).value == "'next day'"


async def test_an_answer_waits_until_the_machine_can_be_woken() -> None:
    house = House(quick(wake_tries=1))
    await house.start()
    machines = await machine(house)
    number = await begin(machines, "x = ask()\nx")
    await called(machines, number)
    await machines.hibernate("m")
    house.host.failing_restores = 2
    await machines.answer("m", number, 0, value="patience")
    assert (await result(machines, number)).value == "'patience'"
    await house.close()


async def test_a_guest_that_takes_no_answer_is_given_up_and_its_machine_can_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(quick(guest_answer_seconds=0.2))
    await house.start()
    machines = await machine(house)
    await machines.run("m", "kept = 1")
    await machines.snapshot("m", "good")
    number = await begin(machines)
    await called(machines, number)
    send = GuestLine.send

    async def never(line: GuestLine, message: GuestMessage) -> None:
        if isinstance(message, Answer):
            await asyncio.get_running_loop().create_future()
        await send(line, message)

    monkeypatch.setattr(GuestLine, "send", never)
    await machines.answer("m", number, 0, value=1)
    ended = await result(machines, number)
    assert (ended.end, "did not take an answer" in (ended.error or "")) == ("lost", True)
    await machines.rollback("m", snapshot="good")
    assert (await machines.run("m", "kept")).value == "1"
    await house.close()


# --- what a guest may say ----------------------------------------------------------------------------------------------------------


async def _say(house: House, message: GuestMessage) -> None:
    (sandbox,) = house.host.sandboxes.values()
    sandbox._say(message)


@pytest.mark.parametrize(
    "message",
    [
        Call(0, 0, "ask"),  # it has been told
        Call(0, 5, "other"),
        Call(0, CALLS_MAX, "ask"),
        Call(7, 1, "ask"),
    ],
)
async def test_a_call_that_cannot_be_costs_a_hostile_guest_its_sandbox(house: House, message: Call) -> None:
    machines = await machine(house)
    number = await begin(machines)
    await called(machines, number)
    await _say(house, message)
    assert (await result(machines, number)).end == "lost"


async def test_a_call_by_an_instruction_that_was_given_no_functions_is_none(house: House) -> None:
    machines = await machine(house)
    number, _ = await machines.exec("m", "print('here')\nhang()")
    async for event in machines.read("m", follow=True):
        if event.kind == "output":
            break
    await _say(house, Call(number, 0, "ask"))
    assert (await result(machines, number)).end == "lost"


async def test_more_calls_at_once_than_may_be_are_refused(house: House) -> None:
    machines = await machine(house)
    number = await begin(machines)
    for call in range(1, CALLS_OPEN_MAX):
        await called(machines, number, call - 1)
        await _say(house, Call(number, call, "ask"))
    await called(machines, number, CALLS_OPEN_MAX - 1)
    await machines.answer("m", number, 3, value=1)  # any of them, in any order
    await _say(house, Call(number, CALLS_OPEN_MAX, "ask"))
    await called(machines, number, CALLS_OPEN_MAX)
    await _say(house, Call(number, CALLS_OPEN_MAX + 1, "ask"))
    assert (await result(machines, number)).end == "lost"


async def test_more_calls_in_all_than_may_be_cost_a_hostile_guest_its_sandbox_though_all_were_answered(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everforge.machines.calls.CALLS_MAX", 20)
    machines = await machine(house)
    number = await begin(machines)
    for call in range(20):
        if call:
            await _say(house, Call(number, call, "ask"))
        await called(machines, number, call)
        if call:  # the first is the code's own, which waits meanwhile
            await machines.answer("m", number, call, value=1)
    await _say(house, Call(number, 20, "ask"))
    assert (await result(machines, number)).end == "lost"


async def test_calls_that_are_larger_together_than_they_may_be_cost_a_hostile_guest_its_sandbox(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everforge.machines.calls.CALLS_TOTAL_BYTES_MAX", 2500)
    machines = await machine(house)
    number = await begin(machines)
    await called(machines, number)
    for call, size in ((1, 1000), (2, 1000)):
        await _say(house, Call(number, call, "ask", ["x" * size]))
        await called(machines, number, call)
    await _say(house, Call(number, 3, "ask", ["x" * 1000]))
    assert (await result(machines, number)).end == "lost"


async def test_an_honest_guest_may_call_with_more_than_it_may_print(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everforge.machines.incarnation.UNDER_WAY_BYTES", 0)
    house = House(quick(output_bytes_max=1000))
    await house.start()
    machines = await machine(house)
    number = await begin(machines, "[ask('x' * 1000) for _ in range(5)]\n'done'")
    for call in range(5):
        await called(machines, number, call)
        await machines.answer("m", number, call)
    assert (await result(machines, number)).value == "'done'"
    await house.close()


def test_calls_that_wait_cannot_be_larger_together_than_they_may_be() -> None:
    """So nobody has to count them beside their number and their sizes."""
    assert CALLS_OPEN_MAX * Call.body_bytes_max <= CALLS_BYTES_MAX
    assert CALLS_OPEN_MAX * Answer.body_bytes_max <= CALLS_BYTES_MAX


async def test_a_call_that_nobody_waits_for_any_more_has_its_answer_and_the_clock_goes_on(house: House) -> None:
    machines = await machine(house)
    number = await begin(machines, timeout_seconds=0.2)
    await called(machines, number)
    await _say(house, CallDropped(number, 0))
    assert (await result(machines, number)).end == "timed_out"
    (answered,) = [e for e in await tape(machines) if isinstance(e, Answered)]
    assert "waits no longer" in (answered.error or "")
    with pytest.raises(WrongState):
        await machines.answer("m", number, 0, value=1)


async def test_an_end_in_the_moment_of_going_to_sleep_is_told(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    from everforge.engine.fake import FakeSandbox

    machines = await machine(house)
    number = await begin(machines)
    await called(machines, number)
    say = FakeSandbox._say

    def end_first(sandbox: FakeSandbox, message: GuestMessage) -> None:
        if isinstance(message, Frozen) and sandbox.guest.running is not None:
            sandbox._end("error", error_name="Alarm", error_message="rang")
        say(sandbox, message)

    monkeypatch.setattr(FakeSandbox, "_say", end_first)
    await machines.hibernate("m")
    assert (await result(machines, number)).error == "Alarm: rang"
    assert await state(machines) == "asleep"
