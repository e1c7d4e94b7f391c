"""Code in a machine calls functions of the client's program."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everforge.wire.messages import (
    CALL_BYTES_MAX,
    CALLS_BYTES_MAX,
    CALLS_MAX,
    CALLS_OPEN_MAX,
    CALLS_TOTAL_BYTES_MAX,
    Answer,
    Call,
    CallDropped,
    End,
    Freeze,
    Frozen,
    Go,
    Interrupt,
    Kill,
    Outputs,
    Run,
    Thawed,
)

from .driver import WAIT_SECONDS, Done, Guest


def begin(guest: Guest, code: str, *functions: str) -> int:
    number, guest._next = guest._next, guest._next + 1
    guest.send(Run(number, code, {}, list(functions or ("ask",))))
    return number


def answer(guest: Guest, value: Any = None, error: str | None = None) -> Call:
    call = guest.wait_for(Call)
    guest.send(Answer(call.instruction, call.call, value, error))
    return call


def serve(guest: Guest, number: int, reply: Callable[[Call], None]) -> Done:
    """Replies to every call until the end of the instruction."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not any(isinstance(m, End) for m in guest.heard):
        assert time.monotonic() < deadline, guest.heard[-5:]
        for call in [m for m in guest.heard if isinstance(m, Call)]:
            guest.heard.remove(call)
            reply(call)
        guest.pump(deadline - time.monotonic())
    return guest.finish(number)


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


def test_what_was_written_to_a_descriptor_right_before_a_call_is_told_before_it(guest: Guest) -> None:
    number = begin(guest, "import os\nfor n in range(100):\n    os.write(1, b'%d ' % n)\n    ask(n)")

    def reply(call: Call) -> None:
        told = "".join(line for m in guest.heard if isinstance(m, Outputs) for line in m.lines)
        assert told.split()[-1:] == [str(call.args[0])]
        guest.send(Answer(number, call.call))

    assert serve(guest, number, reply).end.end == "value"


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
    began = time.monotonic()
    number = begin(guest, "import time; ask(); time.sleep(0.05)")
    call = guest.wait_for(Call)
    hello = guest.attach(guest.epoch)
    assert (hello.running, hello.calls) == (number, [call.call])
    waiting = time.monotonic()
    time.sleep(0.9)
    waited = time.monotonic() - waiting
    assert guest.attach(guest.epoch).running_ms <= 1000 * (time.monotonic() - began - waited)
    guest.send(Answer(number, call.call))
    assert guest.finish(number).end.runtime_us <= 1_000_000 * (time.monotonic() - began - waited)


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


# --- interrupts, forks and threads at every moment ---------------------------------------------------------------------------------

AT_EVERY_LINE = """
import os, signal, sys
OURS = {"hostfunctions.py", "listener.py", "waits.py", "alone.py", "streams.py", "channel.py", "ring.py"}
def interrupted_at(line):
    def trace(frame, event, argument):
        global left
        if os.path.basename(frame.f_code.co_filename) not in OURS:
            return None
        left -= 1
        if left == 0:
            signal.raise_signal(signal.SIGINT)
        return trace
    global left
    left = line
    try:
        sys.settrace(trace)
        return ask(line)
    except KeyboardInterrupt:
        return "interrupted"
    finally:
        sys.settrace(None)
line, said = 0, []
while True:
    line += 1
    said.append(interrupted_at(line))
    if left > 0: break
(line > 100, set(said[:-1]) <= {"interrupted", "heard"}, said.count("interrupted") > 100, said[-1], ask("last"))
"""


def test_an_interrupt_at_any_line_of_a_call_leaves_nothing_half_done(guest: Guest) -> None:
    number = begin(guest, AT_EVERY_LINE)
    while True:
        call = guest.wait_for(Call)
        if call.args == ["last"]:
            break
        guest.send(Answer(number, call.call, "heard"))
    assert guest.attach(guest.epoch).calls == [call.call]  # the agent knows of no other that waits
    guest.send(Answer(number, call.call, "last heard"))
    assert guest.finish(number).end.value == "(True, True, True, 'heard', 'last heard')"


def test_an_interrupt_while_the_listener_begins_leaves_one_that_hears(guest: Guest) -> None:
    code = """
import _thread, signal, time
start = _thread.start_new_thread
def start_and_interrupt(*arguments):
    _thread.start_new_thread = start
    started = start(*arguments)
    time.sleep(0.05)
    signal.raise_signal(signal.SIGINT)
    return started
_thread.start_new_thread = start_and_interrupt
try: ask()
except KeyboardInterrupt: print("interrupted")
[len(ask(n)) for n in range(20)]
"""
    number = begin(guest, code)
    assert guest.wait_for(CallDropped).call == guest.wait_for(Call).call
    for _ in range(20):
        answer(guest, "x" * 200_000)
    done = guest.finish(number)
    assert (done.stdout, done.end.value) == (["interrupted"], str([200_000] * 20))


def test_a_storm_of_interrupts_ends_instructions_and_never_the_interpreter(guest: Guest) -> None:
    guest.run("count, kept, wrong = 0, object(), []\nname = id(kept)")
    code = """
while count < 30:
    try:
        while count < 30:
            if ask(count) != [count] * 9000: wrong.append(count)
            count += 1
    except KeyboardInterrupt: pass
"""
    chance = random.Random(5)

    def disturb(call: Call) -> None:
        when = chance.choice((0, 0, 0, 0, 1, 2, 3))
        if when in (1, 3):
            guest.send(Interrupt(call.instruction))
        guest.send(Answer(call.instruction, call.call, call.args * 9000))
        if when in (2, 3):
            guest.send(Interrupt(call.instruction))

    while guest.value("count") != "30":
        assert serve(guest, begin(guest, code), disturb).end.end in ("value", "interrupted")
    assert guest.value("(id(kept) == name, wrong)") == "(True, [])"


def test_threads_forks_and_fresh_entropy_come_between_calls(fresh: Guest) -> None:
    code = """
import os, threading, time
wrong, goes_on = [], True
def call(first):
    n = first
    while goes_on:
        if ask(n) != n: wrong.append(n)
        n += 10
def fork():
    if (pid := os.fork()) == 0:
        try: ask()
        except RuntimeError: os._exit(7)
        os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
threads = [threading.Thread(target=call, args=(n,)) for n in range(6)]
for t in threads: t.start()
exits = {fork() for _ in range(15)}
while not os.path.exists("enough"): time.sleep(0.001)
goes_on = False
for t in threads: t.join()
wrong, exits
"""
    fresh.run("import os; folder = os.getcwd()")
    folder = (fresh.value("folder") or "").strip("'")
    number, rounds = begin(fresh, code), 0

    def reply(call: Call) -> None:
        """And now and then the machine stands still, and goes on as a copy."""
        nonlocal rounds
        if call.call % 10 == 9 and rounds < 20:
            rounds += 1
            fresh.send(Freeze(rounds))
            fresh.send(Go(0, "ab" * 32))
            if rounds == 20:
                (Path(folder) / "enough").touch()
        fresh.send(Answer(number, call.call, call.args[0]))

    done = serve(fresh, number, reply)
    assert [m.reseeded for m in done.said if isinstance(m, Thawed)] == [True] * 20
    assert done.end.value == "([], {7})"


def test_threads_that_call_while_instructions_end_are_told(guest: Guest) -> None:
    code = """
import threading, time
told = []
def call(ask=ask):
    try:
        while True: ask()
    except RuntimeError as e: told.append(str(e))
threads = [threading.Thread(target=call) for _ in range(10)]
for t in threads: t.start()
time.sleep(0.01)
"""
    for _ in range(5):
        done = serve(guest, begin(guest, code), lambda call: guest.send(Answer(call.instruction, call.call)))
        assert done.end.end == "value"
        assert guest.value("[t.join() for t in threads]; len(told)") == "10"


def test_an_interrupt_of_asyncio_ends_the_call_of_its_task(guest: Guest) -> None:
    guest.run("kept = 5")
    number = begin(guest, "import asyncio\nasync def main(): return ask()\nasyncio.run(main())")
    guest.wait_for(Call)
    guest.send(Interrupt(number))
    guest.wait_for(CallDropped)
    assert guest.finish(number).end.end == "interrupted"
    assert guest.value("kept") == "5"


def test_a_handler_that_goes_on_lets_the_call_wait(guest: Guest) -> None:
    number = begin(guest, "import signal\nbefore = signal.signal(signal.SIGINT, lambda *_: print('not now'))\nask()")
    call = guest.wait_for(Call)
    guest.send(Interrupt(number))
    guest.wait_for(Outputs)
    guest.send(Answer(number, call.call, "in the end"))
    assert guest.finish(number).end.value == "'in the end'"
    guest.run("signal.signal(signal.SIGINT, before)")


def test_a_function_that_was_kept_is_refused_in_another_instruction_that_has_others(guest: Guest) -> None:
    guest.finish(begin(guest, "kept = ask"))
    for functions in (("other",), ("ask",)):
        done = guest.finish(begin(guest, "kept()", *functions))
        assert (done.end.error_name, "only while the instruction" in (done.end.error_message or "")) == ("RuntimeError", True)


def test_a_call_from_a_destructor_in_the_middle_of_a_call_holds_nobody(guest: Guest) -> None:
    code = """
import gc, json
class Calls:
    def __init__(self): self.itself = self
    def __del__(self):
        try: ask("from a destructor")
        except RuntimeError as e: refused.append(str(e))
refused, before = [], gc.get_threshold()
gc.set_threshold(1, 1, 1)
for n in range(100):
    Calls()
    ask(n)
gc.set_threshold(*before)
"done"
"""
    done = serve(guest, begin(guest, code), lambda call: guest.send(Answer(call.instruction, call.call, [[]] * 50)))
    assert done.end.value == "'done'"
    assert guest.value("all('destructor' in why for why in refused)") == "True"


# --- what hostile code may do ------------------------------------------------------------------------------------------------------


def test_all_calls_of_an_instruction_together_have_a_limit_that_the_code_is_told_of(guest: Guest) -> None:
    code = """
import sys
limits = vars(sys.modules[type(ask).__module__])
kept, limits["CALLS_TOTAL_BYTES_MAX"] = limits["CALLS_TOTAL_BYTES_MAX"], 25_000
try:
    for n in range(3): ask("x" * 10_000)
except RuntimeError as e:
    print(e)
limits["CALLS_TOTAL_BYTES_MAX"] = kept
ask("and it goes on")
"""
    number = begin(guest, code)
    for _ in range(3):
        answer(guest, "heard")
    done = guest.finish(number)
    assert done.end.value == "'heard'"
    assert "may take 25000 bytes in all" in done.stdout[0]
    answer_to_the_next = begin(guest, "ask()")
    answer(guest)
    assert guest.finish(answer_to_the_next).end.end == "value"


def test_an_instruction_may_call_so_often_and_the_code_is_told_when_it_was_too_often(guest: Guest) -> None:
    code = """
import sys
limits = vars(sys.modules[type(ask).__module__])
kept, limits["CALLS_MAX"] = limits["CALLS_MAX"], 3
try:
    for n in range(4): ask(n)
except RuntimeError as e:
    print(n, e)
limits["CALLS_MAX"] = kept
"""
    number = begin(guest, code)
    for _ in range(3):
        answer(guest)
    assert "3 one instruction may call functions of the client's program 3 times" in guest.finish(number).stdout[0]


HOSTILE = """
import json, time
def call(number, function="ask", *args, ascii=True):
    told = {"instruction": INSTRUCTION, "call": number, "function": function, "args": list(args), "kwargs": {}}
    ask._functions._spool.send(7, json.dumps(told, ensure_ascii=ascii).encode())
"""


def hostile(guest: Guest, code: str) -> int:
    return begin(guest, HOSTILE.replace("INSTRUCTION", str(guest._next)) + code + "\ntime.sleep(60)")


@pytest.mark.parametrize(
    "code",
    [
        "call(0, 'other')",
        f"call({CALLS_MAX})",
        "call(1); call(1)",
        f"for n in range({CALLS_OPEN_MAX} + 1): call(n)",
        f"call(0, 'ask', 'x' * {Call.body_bytes_max})",
        f"call(0, 'ask', 'ü' * ({CALL_BYTES_MAX} // 2), ascii=False)",  # it would be three times as long where it is passed on
    ],
)
def test_a_program_that_plays_with_the_channel_loses_only_its_interpreter(guest: Guest, code: str) -> None:
    done = guest.finish(hostile(guest, code))
    assert (done.end.end, "broke the protocol" in (done.end.error_message or "")) == ("died", True)
    assert guest.value("1") == "1"


def test_one_that_calls_without_end_loses_its_interpreter_too(guest: Guest) -> None:
    calls: list[int] = []

    def reply(call: Call) -> None:
        calls.append(call.call)
        guest.send(Answer(call.instruction, call.call))

    assert serve(guest, hostile(guest, "for n in range(1000): call(n, 'ask', 'x' * 1_000_000)"), reply).end.end == "died"
    assert len(calls) <= CALLS_TOTAL_BYTES_MAX // 1_000_000


def test_one_that_takes_no_answers_loses_its_interpreter_before_they_fill_the_memory(guest: Guest, tmp_path: Path) -> None:
    paced = f"""
import os
for n in range(1000):
    call(n)
    while not os.path.exists(f"{tmp_path}/{{n}}"): time.sleep(0.001)
"""
    answers = 0

    def reply(call: Call) -> None:
        nonlocal answers
        answers += 1
        guest.send(Answer(call.instruction, call.call, "x" * 1_000_000))
        (tmp_path / str(call.call)).touch()

    end = serve(guest, hostile(guest, paced), reply).end
    assert (end.end, "does not take what it is told" in (end.error_message or "")) == ("died", True)
    assert answers <= CALLS_BYTES_MAX // 1_000_000 + 1
    assert guest.value("1") == "1"
