"""The guest's end of the link: attach, resume, epochs, resends."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

from everforge.wire.messages import Attach, End, Outputs, Run

from .driver import Guest, until_there


def test_nothing_is_written_before_the_first_attach(tmp_path: Path) -> None:
    guest = Guest(tmp_path)
    try:
        assert not guest.pump(1.0)
        hello = guest.attach()
        assert (hello.epoch, hello.sent, hello.received, hello.frozen, hello.running, hello.last, hello.interpreter) == (
            0,
            0,
            0,
            False,
            None,
            None,
            1,
        )
    finally:
        guest.close()


def test_what_was_not_acknowledged_comes_again_after_a_new_attach(fresh: Guest) -> None:
    fresh.auto_ack = False
    number = fresh.begin("for i in range(50): print(i)\n'end'")
    fresh.wait_for(End)
    fresh.heard.clear()
    hello = fresh.attach(have=0)
    assert (hello.epoch, hello.last, hello.running, hello.sent > 0) == (1, number, None, True)
    done = fresh.finish(number)
    assert done.stdout == [str(i) for i in range(50)]


def test_a_takeover_in_the_middle_of_an_instruction_loses_and_repeats_no_line(fresh: Guest) -> None:
    number = fresh.begin("import time\nfor i in range(100): print(i); time.sleep(0.005)\n'end'")
    lines: list[str] = []
    for _ in range(5):
        lines += fresh.wait_for(Outputs).lines
        hello = fresh.attach()
        assert hello.running in (number, None)
    done = fresh.finish(number)
    assert lines + done.stdout == [str(i) for i in range(100)]


def test_acknowledged_records_do_not_come_again(fresh: Guest) -> None:
    fresh.run("print('old')")
    fresh.attach()
    assert fresh.run("print('new')").stdout == ["new"]


def test_a_higher_epoch_starts_both_counters_again(fresh: Guest) -> None:
    for _ in range(3):
        fresh.run("print('x')")
    hello = fresh.attach(epoch=7)
    assert (hello.epoch, hello.received, hello.last, hello.sent >= 6) == (1, 3, 2, True)
    number = fresh.begin("1", instruction=0)
    assert fresh.finish(number).end.value == "1"
    again = fresh.attach(epoch=7)
    assert (again.epoch, again.received, again.last) == (7, 1, 0)


def test_an_attach_with_a_lower_epoch_is_ignored(fresh: Guest) -> None:
    fresh.attach(epoch=5)
    fresh.send(Attach("00" * 16, 3, 0))
    assert not fresh.pump(0.3)
    assert fresh.value("1") == "1"


def test_an_instruction_taken_already_is_not_run_again(fresh: Guest) -> None:
    number = fresh.begin("n = globals().get('n', 0) + 1\nn")
    assert fresh.finish(number).end.value == "1"
    fresh.send(Run(number, "n = globals().get('n', 0) + 1\nn"))
    assert fresh.value("n") == "1"


def test_long_code_comes_in_many_records(fresh: Guest) -> None:
    text = "é" * 300_000
    assert fresh.value(f"len({text!r})") == "300000"


def test_a_large_value_comes_in_many_records(fresh: Guest) -> None:
    assert len(fresh.value("'x' * 5_000_000") or "") == 5_000_002


def test_running_is_told_with_its_time(fresh: Guest, tmp_path: Path) -> None:
    began = time.monotonic()
    number = fresh.begin(f"print('begun')\n{until_there(tmp_path / 'heard')}")
    fresh.wait_for(Outputs)
    time.sleep(0.2)
    hello = fresh.attach()
    assert hello.running == number
    assert 150 <= hello.running_ms <= 1000 * (time.monotonic() - began)
    (tmp_path / "heard").touch()
    fresh.finish(number)


def test_a_hello_knows_of_the_instruction_that_came_right_before_the_attach(fresh: Guest) -> None:
    """Both lie in the pipe when the guest reads: a new server must hear that the instruction was taken, or it would send it again as new."""
    fresh.run("1")
    os.kill(fresh.process.pid, signal.SIGSTOP)
    threading.Timer(0.2, os.kill, (fresh.process.pid, signal.SIGCONT)).start()
    number = fresh.begin("import time; time.sleep(0.3); 'taken'")
    hello = fresh.attach(epoch=fresh.epoch)
    assert hello.last == number
    assert fresh.finish(number).end.value == "'taken'"
