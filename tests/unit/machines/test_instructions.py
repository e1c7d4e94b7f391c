from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from everforge.machines import weir
from everforge.store.base import Change
from everforge.wire.errors import InstructionNotFound, InvalidInput, KeyReused, QueueFull, Uncertain
from everforge.wire.events import Accepted, Ended, Event, Output
from kit.house import House, NewMachine, quick


async def new(house: House, **wanted: object) -> str:
    return (await house.machines.create(NewMachine(**wanted))).record.name  # pyright: ignore[reportArgumentType]


async def test_state_is_kept_between_instructions(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 41")
    ended = await house.machines.run(name, "x + 1")
    assert (ended.end, ended.value, ended.instruction) == ("value", "42", 1)


async def test_instructions_are_numbered_from_0_and_run_in_order(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "seen = []")
    numbers = [(await house.machines.exec(name, f"seen.append({i})"))[0] for i in range(20)]
    assert numbers == list(range(1, 21))
    assert (await house.machines.run(name, "seen")).value == repr(list(range(20)))


async def test_the_tape_has_acceptance_output_and_end_in_that_order(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "print('a'); print('b')")
    events = [e async for e in house.machines.read(name) if isinstance(e, Accepted | Output | Ended)]
    assert [type(e) for e in events] == [Accepted, Output, Ended]
    assert isinstance(events[1], Output)
    assert (events[1].lines, events[1].first_seq, events[1].width) == (["a", "b"], 0, 2)


async def test_a_reader_goes_on_from_any_position_exactly_once(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "for i in range(5): print(i)")
    whole = [line for e in [e async for e in house.machines.read(name)] if isinstance(e, Output) for line in e.lines]
    (first,) = [e async for e in house.machines.read(name) if isinstance(e, Output)]
    rest = [line async for e in house.machines.read(name, first.position + 1) if isinstance(e, Output) for line in e.lines]
    assert whole == ["0", "1", "2", "3", "4"]
    assert rest == ["2", "3", "4"]


async def test_two_followers_see_what_comes_and_end_with_the_machine(house: House) -> None:
    name = await new(house)

    async def follow() -> list[str]:
        return [line async for e in house.machines.read(name, follow=True) if isinstance(e, Output) for line in e.lines]

    followers = [asyncio.create_task(follow()) for _ in range(2)]
    for i in range(3):
        await house.machines.run(name, f"print({i})")
    await house.machines.delete(name)
    assert await asyncio.gather(*followers) == [["0", "1", "2"]] * 2


async def test_many_lines_said_at_once_are_several_entries(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "tell(*map(str, range(10_000)), 'rest', partial=True)")
    outputs = [e async for e in house.machines.read(name) if isinstance(e, Output)]
    assert max(len(e.lines) for e in outputs) <= 4096
    assert [e.first_seq for e in outputs] == [0, 4096, 8192]
    assert [line for e in outputs for line in e.lines] == [*map(str, range(10_000)), "rest"]
    assert [e.partial for e in outputs] == [False, False, True]


async def test_a_timeout_ends_the_instruction_and_the_state_survives(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    ended = await house.machines.run(name, "hang()", timeout_seconds=0.05)
    assert ended.end == "timed_out"
    assert "Timed out" in (ended.error or "")
    assert (await house.machines.run(name, "x")).value == "1"


async def test_an_interrupt_ends_the_running_instruction_and_if_asked_the_waiting_ones(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    running, _ = await house.machines.exec(name, "hang()")
    waiting, _ = await house.machines.exec(name, "x = 2")
    last, interrupted = await house.machines.exec(name, "x", interrupt=True)
    assert interrupted
    assert (await house.machines.result(name, running)).end == "interrupted"
    assert (await house.machines.result(name, waiting)).end == "interrupted"
    assert (await house.machines.result(name, last)).value == "1"
    assert not await house.machines.interrupt(name)


async def test_an_instruction_that_is_refused_or_known_interrupts_nothing() -> None:
    house = House(quick(queue_max=2))
    await house.start()
    name = await new(house)
    await house.machines.run(name, "x = 1")
    running, _ = await house.machines.exec(name, "hang()", key="k", timeout_seconds=600)
    await house.until(name, "busy")
    waiting = [(await house.machines.exec(name, "x", key=f"k{n}"))[0] for n in range(2)]
    assert await house.machines.exec(name, "x", key="k1", interrupt=True) == (waiting[1], False)
    with pytest.raises(QueueFull):
        await house.machines.exec(name, "x", interrupt=True)
    assert await house.machines.exec(name, "hang()", key="k", timeout_seconds=600, interrupt=True) == (running, False)
    with pytest.raises(KeyReused):
        await house.machines.exec(name, "hang()", key="k", timeout_seconds=601, interrupt=True)
    assert (await house.machines.get(name)).pending == 3
    assert await house.machines.interrupt(name)
    assert [(await house.machines.result(name, n)).end for n in (running, *waiting)] == ["interrupted", "value", "value"]
    await house.close()


async def test_one_instruction_is_interrupted_by_its_number(house: House) -> None:
    name = await new(house)
    ended, _ = await house.machines.exec(name, "x = 1")
    await house.machines.result(name, ended)
    running, _ = await house.machines.exec(name, "hang()", timeout_seconds=600)
    first, _ = await house.machines.exec(name, "'first'")
    second, _ = await house.machines.exec(name, "'second'")
    assert not await house.machines.interrupt(name, instruction=ended)
    with pytest.raises(InstructionNotFound):
        await house.machines.interrupt(name, instruction=second + 1)
    with pytest.raises(InvalidInput):
        await house.machines.interrupt(name, instruction=first, pending=True)
    assert await house.machines.interrupt(name, instruction=first)
    assert (await house.machines.result(name, first)).end == "interrupted"  # it does not wait for its turn
    assert (await house.machines.get(name)).pending == 2
    assert await house.machines.interrupt(name, instruction=running)
    assert (await house.machines.result(name, running)).end == "interrupted"
    assert (await house.machines.result(name, second)).value == "'second'"


@pytest.mark.parametrize("how", ["kill", "stop"])
async def test_what_was_interrupted_before_it_ran_does_not_run_in_another_server(house: House, how: str) -> None:
    name = await new(house)
    await house.machines.run(name, "seen = []")
    running, _ = await house.machines.exec(name, "sleep(0.5)", timeout_seconds=60)
    waiting = [(await house.machines.exec(name, f"seen.append({n})"))[0] for n in range(3)]
    await house.until(name, "busy")
    assert await house.machines.interrupt(name, instruction=waiting[1])
    if how == "kill":
        await house.kill()
    else:
        await house.machines.forge.stop()
    await house.start()
    assert (await house.machines.result(name, running)).end == "value"
    assert [(await house.machines.result(name, n)).end for n in waiting] == ["value", "interrupted", "value"]
    assert (await house.machines.run(name, "seen")).value == "[0, 2]"
    ends = [e.instruction async for e in house.machines.read(name) if isinstance(e, Ended)]
    assert len(ends) == len(set(ends))


async def test_one_that_is_interrupted_while_its_machine_wakes_does_not_run(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "seen = []")
    for turns in range(12):
        await house.machines.hibernate(name)
        number, _ = await house.machines.exec(name, f"seen.append({turns})")
        for _ in range(turns):
            await asyncio.sleep(0)
        was = await house.machines.interrupt(name, instruction=number)
        ended = await house.machines.result(name, number)
        assert was or ended.end == "value"
        assert ended.end in ("value", "interrupted")
        kept = (await house.machines.run(name, "seen")).value or ""
        assert (str(turns) in kept.strip("[]").split(", ")) == (ended.end == "value")
    ends = [e.instruction async for e in house.machines.read(name) if isinstance(e, Ended)]
    assert len(ends) == len(set(ends))


async def test_the_first_interrupt_may_be_endured_and_the_second_kills(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    running, _ = await house.machines.exec(name, "endure()", timeout_seconds=600)
    await house.until(name, "busy")
    assert await house.machines.interrupt(name)
    await asyncio.sleep(2 * house.machines.forge.settings.interrupt_grace_seconds)
    assert (await house.machines.get(name)).state == "busy"
    assert await house.machines.interrupt(name)
    assert (await house.machines.result(name, running)).end == "interrupted"
    assert "NameError" in ((await house.machines.run(name, "x")).error or "")


async def test_two_interrupts_before_it_has_begun_to_run_insist(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    keeper = house.machines.forge.kept(house.machines.account, name)
    assert keeper is not None
    running, _ = await house.machines.exec(name, "endure()", timeout_seconds=600)
    async with asyncio.timeout(10):
        while keeper.running is None:  # it is just being sent
            await asyncio.sleep(0)
    assert await house.machines.interrupt(name)
    assert await house.machines.interrupt(name)
    assert (await house.machines.result(name, running)).end == "interrupted"


async def test_a_deadline_kills_what_endures_an_interrupt(house: House) -> None:
    name = await new(house)
    running, _ = await house.machines.exec(name, "endure()", timeout_seconds=0.3)
    await house.machines.interrupt(name)
    assert (await house.machines.result(name, running)).end == "timed_out"


def hold_floods(house: House, monkeypatch: pytest.MonkeyPatch, seconds: float) -> list[float]:
    """The first of them so long, the others hardly. Each is noted."""
    held: list[float] = []

    async def sleep(wanted: float) -> None:
        held.append(wanted)
        await asyncio.sleep(seconds if len(held) == 1 else 0)

    monkeypatch.setattr(weir, "FREE_SECONDS", 0.0)
    house.machines.forge.weir.sleep = sleep
    return held


async def test_an_end_that_comes_behind_a_flood_is_waited_for_however_long_the_flood_is_held(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says nothing of the code that it ended late: neither the interpreter nor the sandbox is given up for it."""
    name, neighbour = await new(house), await new(house)
    await house.machines.run(name, "x = 1")
    await house.machines.run(neighbour, "y = 1")
    graces = house.machines.forge.settings.interrupt_grace_seconds + house.machines.forge.settings.kill_grace_seconds
    held = hold_floods(house, monkeypatch, 3 * graces)
    ended = await house.machines.run(name, "for _ in range(200): tell('x')\nhang()", timeout_seconds=0.2)
    assert held
    assert (ended.end, ended.note) == ("timed_out", None)
    assert (await house.machines.run(name, "x")).value == "1"


async def test_code_that_ended_in_time_is_not_timed_out_because_it_was_heard_late(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    name, neighbour = await new(house), await new(house)
    await house.machines.run(neighbour, "y = 1")
    held = hold_floods(house, monkeypatch, 0.6)
    ended = await house.machines.run(name, "for _ in range(200): tell('x')\n40 + 2", timeout_seconds=0.2)
    assert held
    assert (ended.end, ended.value, ended.note) == ("value", "42", None)


async def test_a_dead_interpreter_is_said_so_and_what_waited_is_cancelled(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 1")
    first, _ = await house.machines.exec(name, "die()")
    second, _ = await house.machines.exec(name, "x")
    assert (await house.machines.result(name, first)).end == "error"
    assert (await house.machines.result(name, second)).end == "cancelled"
    after = await house.machines.run(name, "x")
    assert "NameError" in (after.error or "")
    assert "new interpreter" in (after.note or "")


async def test_the_queue_has_a_limit_and_nothing_is_lost_at_it() -> None:
    house = House(quick(queue_max=3))
    await house.start()
    name = await new(house)
    await house.machines.run(name, "1")
    numbers = [(await house.machines.exec(name, "hang()", key="k"))[0]]
    await asyncio.sleep(0.01)
    with pytest.raises(QueueFull):
        for _ in range(10):
            numbers.append((await house.machines.exec(name, "1"))[0])
    assert len(numbers) == 4
    assert (await house.machines.exec(name, "hang()", key="k"))[0] == numbers[0]  # it was accepted before, and that stays so
    await house.machines.interrupt(name)
    assert [(await house.machines.result(name, n)).end for n in numbers] == ["interrupted", "value", "value", "value"]
    await house.close()


async def test_an_idempotency_key_is_accepted_once(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "x = 0")
    both = await asyncio.gather(*(house.machines.exec(name, "x += 1", key="k") for _ in range(2)))
    assert len({number for number, _ in both}) == 1
    after = await house.machines.run(name, "x")
    assert (after.value, after.instruction) == ("1", 2)
    with pytest.raises(KeyReused):
        await house.machines.exec(name, "x += 2", key="k")
    await house.restart()
    assert (await house.machines.exec(name, "x += 1", key="k"))[0] == both[0][0]


async def test_a_result_may_be_asked_for_again_and_an_unknown_one_is_refused(house: House) -> None:
    name = await new(house)
    first = await house.machines.run(name, "1")
    assert await house.machines.result(name, 0) == first
    await house.machines.hibernate(name)
    assert (await house.machines.result(name, 0)).value == "1"
    with pytest.raises(InstructionNotFound):
        await house.machines.result(name, 7)


async def test_a_keeper_that_fails_is_replaced_and_nothing_is_lost_or_done_twice(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    name = await new(house)
    await house.machines.run(name, "seen = []")
    commit, failures = house.store.commit, iter([RuntimeError("a mistake of ours")])

    async def fail_once(change: Change) -> Sequence[Event]:
        if any(isinstance(e, Ended) for e in change.events) and (error := next(failures, None)):
            raise error
        return await commit(change)

    monkeypatch.setattr(house.store, "commit", fail_once)
    with pytest.raises(Uncertain):
        await house.machines.run(name, "seen.append(1)")
    assert (await house.machines.run(name, "seen")).value == "[1]"
    assert (await house.machines.result(name, 1)).end == "value"


async def test_a_reader_that_begins_within_an_entry_gets_the_rest_of_it_from_memory_and_from_the_store(house: House) -> None:
    name = await new(house)
    follower = house.machines.read(name, follow=True)
    await anext(follower)  # there is somebody to keep the newest entries in memory for
    await house.machines.run(name, "tell('a', 'b', 'c')")
    (output,) = [e async for e in house.machines.read(name) if isinstance(e, Output)]
    live = [e async for e in house.machines.read(name, output.position + 1) if isinstance(e, Output)]
    await follower.aclose()  # pyright: ignore[reportAttributeAccessIssue]
    stored = [e async for e in house.machines.read(name, output.position + 1) if isinstance(e, Output)]
    for rest in (live, stored):
        assert [(e.lines, e.first_seq, e.position) for e in rest] == [(["c"], 2, output.position + 2)]


async def test_an_instruction_has_variables_of_its_own_and_the_next_has_not(house: House) -> None:
    name = await new(house)
    first, _ = await house.machines.exec(name, "environ['WHO']", env={"WHO": "one"})
    assert (await house.machines.result(name, first)).value == "'one'"
    assert (await house.machines.run(name, "environ.get('WHO', 'nobody')")).value == "'nobody'"
    (accepted,) = [e async for e in house.machines.read(name) if isinstance(e, Accepted) and e.instruction == first]
    assert accepted.env == {"WHO": "one"}


async def test_what_was_accepted_with_variables_runs_with_them_after_a_crash(house: House) -> None:
    name = await new(house)
    await house.machines.exec(name, "hang()", timeout_seconds=0.3)
    number, _ = await house.machines.exec(name, "environ['WHO']", env={"WHO": "one"})
    await house.restart()
    assert (await house.machines.result(name, number)).value == "'one'"


async def test_the_same_key_with_other_variables_is_refused(house: House) -> None:
    name = await new(house)
    number, _ = await house.machines.exec(name, "1", key="k", env={"WHO": "one"})
    assert (await house.machines.exec(name, "1", key="k", env={"WHO": "one"}))[0] == number
    with pytest.raises(KeyReused):
        await house.machines.exec(name, "1", key="k", env={"WHO": "two"})


async def test_an_older_guest_is_not_asked_for_what_it_does_not_know(house: House) -> None:
    name = await new(house)
    await house.machines.run(name, "1")
    next(iter(house.host.sandboxes.values())).guest.protocol = 1
    await house.machines.hibernate(name)
    for options in ({"env": {"WHO": "one"}}, {"functions": ["ask"]}):
        number, _ = await house.machines.exec(name, "1", **options)  # pyright: ignore[reportArgumentType]
        ended = await house.machines.result(name, number)
        assert (ended.end, (ended.error or "")[:12]) == ("error", "GuestTooOld:")
    assert (await house.machines.run(name, "2")).value == "2"


@pytest.mark.parametrize("functions", ["ask", ["1x"], ["a.b"], ["class"], [""], [7], ["a"] * 101, 5])
async def test_a_function_must_have_a_name_that_code_can_call(house: House, functions: object) -> None:
    name = await new(house)
    with pytest.raises(InvalidInput):
        await house.machines.exec(name, "1", functions=functions)  # pyright: ignore[reportArgumentType]


async def test_no_functions_are_nothing(house: House) -> None:
    name = await new(house)
    number, _ = await house.machines.exec(name, "1", functions=[])
    assert (await house.machines.result(name, number)).value == "1"
