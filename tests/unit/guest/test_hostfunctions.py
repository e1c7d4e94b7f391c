"""Code in a machine calls functions of the client's program."""

from __future__ import annotations

import json
from typing import Any

import pytest

from everforge.wire.messages import CALL_BYTES_MAX, CALLS_OPEN_MAX, Answer, Call, CallDropped, Freeze, Frozen, Go, Interrupt, Kill, Outputs, Run

from .driver import Guest


def begin(guest: Guest, code: str, *functions: str) -> int:
    number, guest._next = guest._next, guest._next + 1
    guest.send(Run(number, code, {}, list(functions or ("ask",))))
    return number


def answer(guest: Guest, value: Any = None, error: str | None = None) -> Call:
    call = guest.wait_for(Call)
    guest.send(Answer(call.instruction, call.call, value, error))
    return call


def test_a_call_waits_for_its_answer_and_returns_it(guest: Guest) -> None:
    number = begin(guest, "print('before')\nask(1, 'two', [3.5, None], key={'a': True})")
    call = answer(guest, {"yes": [1, "ü", None]})
    assert (call.instruction, call.call, call.function) == (number, 0, "ask")
    assert (call.args, call.kwargs) == ([1, "two", [3.5, None]], {"key": {"a": True}})
    done = guest.finish(number)
    assert done.end.value == "{'yes': [1, 'ü', None]}"
    assert done.stdout == ["before"]


def test_what_was_printed_before_a_call_is_told_before_it(guest: Guest) -> None:
    number = begin(guest, "print('one')\nimport os; os.write(1, b'two\\n')\nprint('name? ', end='')\nask()\nprint('three')")
    call = guest.wait_for(Call)
    assert [line for m in guest.heard if isinstance(m, Outputs) for line in m.lines] == ["one", "two", "name? "]
    guest.send(Answer(number, call.call))
    assert guest.finish(number).stdout[-1].endswith("three")


def test_an_error_is_raised_with_its_message_and_can_be_caught(guest: Guest) -> None:
    number = begin(guest, "try:\n    ask()\nexcept HostFunctionError as e:\n    print('caught', e)\nask()")
    answer(guest, error="nobody is there")
    answer(guest, error="ValueError: still nobody")
    done = guest.finish(number)
    assert done.stdout == ["caught nobody is there"]
    assert (done.end.end, done.end.error_name, done.end.error_message) == ("error", "HostFunctionError", "ValueError: still nobody")
    assert "hostfunctions.py" not in (done.end.traceback or "")


def test_functions_defined_in_it_coroutines_and_threads_may_call(guest: Guest) -> None:
    code = """
import threading
def inner(x): return ask(x)
async def later(): return inner("coroutine")
found = [inner("function"), await later()]
threads = [threading.Thread(target=lambda: found.append(inner("thread"))) for _ in range(1)]
for t in threads: t.start()
for t in threads: t.join()
found
"""
    number = begin(guest, code)
    for expected in ("function", "coroutine", "thread"):
        assert answer(guest, expected.upper()).args == [expected]
    assert guest.finish(number).end.value == "['FUNCTION', 'COROUTINE', 'THREAD']"


def test_several_threads_wait_at_once_and_each_gets_its_own_answer(guest: Guest) -> None:
    code = f"""
import concurrent.futures
with concurrent.futures.ThreadPoolExecutor({CALLS_OPEN_MAX}) as pool:
    found = sorted(pool.map(ask, range(200)))
found == [n * 2 for n in range(200)]
"""
    number = begin(guest, code)
    for _ in range(0, 200, 8):
        calls = [guest.wait_for(Call) for _ in range(8)]
        for call in reversed(calls):
            guest.send(Answer(number, call.call, call.args[0] * 2))
    assert guest.finish(number).end.value == "True"


def test_large_answers_arrive_whole(guest: Guest) -> None:
    number = begin(guest, "[len(ask(n)) for n in range(5)]")
    for _ in range(5):
        answer(guest, "x" * 900_000)
    assert guest.finish(number).end.value == str([900_000] * 5)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("object()", "TypeError"),
        ("{1, 2}", "TypeError"),
        ("float('nan')", "TypeError"),
        ("b'bytes'", "TypeError"),
        ("eval('[' * 80 + ']' * 80)", "TypeError"),
        (f"'x' * {CALL_BYTES_MAX}", "ValueError"),
    ],
)
def test_what_json_cannot_say_or_is_too_large_is_refused_on_the_spot(guest: Guest, arguments: str, error: str) -> None:
    done = guest.finish(begin(guest, f"ask({arguments})"))
    assert (done.end.error_name, done.said) == (error, [])
    assert "ask()" in (done.end.error_message or "")


def test_a_name_is_there_for_its_instruction_alone_and_what_it_hid_comes_back(fresh: Guest) -> None:
    fresh.run("ask = 'mine'\nkept = []")
    number = begin(fresh, "kept.append(ask)\nother = 1", "ask", "other")
    fresh.finish(number)
    assert fresh.value("ask, other, 'HostFunctionError' in globals()") == "('mine', 1, False)"
    done = fresh.run("kept[0]()")
    assert done.end.error_name == "RuntimeError"
    assert "only while the instruction" in (done.end.error_message or "")


def test_a_call_can_be_interrupted_and_the_machine_is_told_that_nobody_waits(guest: Guest) -> None:
    number = begin(guest, "try:\n    ask()\nexcept KeyboardInterrupt:\n    print('caught')\nask(2)")
    first = guest.wait_for(Call)
    guest.send(Interrupt(number))
    assert guest.wait_for(CallDropped).call == first.call
    guest.send(Answer(number, first.call, "too late"))
    second = answer(guest, "in time")
    assert second.call > first.call
    done = guest.finish(number)
    assert (done.end.value, done.stdout) == ("'in time'", ["caught"])


def test_an_interrupt_ends_it_and_a_kill_too(guest: Guest) -> None:
    number = begin(guest, "ask()")
    guest.wait_for(Call)
    guest.send(Interrupt(number))
    assert guest.finish(number).end.end == "interrupted"
    number = begin(guest, "ask()")
    guest.wait_for(Call)
    guest.send(Kill(number))
    assert guest.finish(number).end.end == "died"
    assert guest.value("1 + 1") == "2"


def test_a_thread_that_still_waits_when_the_instruction_ends_is_told(guest: Guest) -> None:
    code = """
import threading, queue
said = queue.Queue()
def call():
    try: ask()
    except RuntimeError as e: said.put(str(e))
threading.Thread(target=call).start()
"""
    begin(guest, code)
    guest.finish(guest._next - 1)
    told = guest.value("said.get(timeout=10)") or ""
    assert "has ended" in told or "only while" in told  # it may have begun to wait before or after


def test_a_forked_process_cannot_call(guest: Guest) -> None:
    code = """
import os
if (pid := os.fork()) == 0:
    try: ask()
    except RuntimeError as e: print("refused:", e)
    os._exit(0)
os.waitpid(pid, 0)[1]
"""
    done = guest.finish(begin(guest, code))
    assert done.stdout
    assert done.stdout[0].startswith("refused:")


def test_a_second_answer_and_one_to_nobody_change_nothing(guest: Guest) -> None:
    number = begin(guest, "ask(), ask()")
    first = answer(guest, 1)
    guest.send(Answer(number, first.call, "again"))
    guest.send(Answer(number, 77, "nobody"))
    guest.send(Answer(number + 5, 1, "nobody"))
    answer(guest, 2)
    assert guest.finish(number).end.value == "(1, 2)"


def test_waiting_is_no_running_time(guest: Guest) -> None:
    number = begin(guest, "import time; ask(); time.sleep(0.05)")
    call = guest.wait_for(Call)
    hello = guest.attach(guest.epoch)
    assert (hello.running, hello.calls) == (number, [call.call])
    guest.pump(0.6)
    guest.pump(0.3)
    assert guest.attach(guest.epoch).running_ms < 300
    guest.send(Answer(number, call.call))
    assert guest.finish(number).end.runtime_us < 600_000


def test_a_call_survives_standing_still_and_a_new_epoch(fresh: Guest) -> None:
    number = begin(fresh, "x = ask()\nx * 2")
    call = fresh.wait_for(Call)
    fresh.send(Freeze(1))
    fresh.wait_for(Frozen)
    hello = fresh.attach(2)
    assert (hello.running, hello.calls, hello.frozen) == (number, [call.call], True)
    fresh.send(Go(0))
    fresh.send(Answer(number, call.call, 21))
    assert fresh.attach(2).last == number
    assert fresh.finish(number).end.value == "42"


def test_a_program_that_plays_with_the_channel_loses_only_its_interpreter(fresh: Guest) -> None:
    body = json.dumps({"instruction": 0, "call": 0, "function": "other", "args": [], "kwargs": {}})
    code = f"ask._functions._spool.send(7, {body.encode()!r})\nimport time; time.sleep(30)"
    done = fresh.finish(begin(fresh, code))
    assert done.end.end == "died"
    assert fresh.value("1") == "1"
