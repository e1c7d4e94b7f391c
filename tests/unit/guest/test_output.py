"""Stdout and stderr: in order, by line, bounded, attributed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from everforge.wire.messages import Ack, Freeze, Frozen, Go, Outputs, Setup, Thawed

from .driver import Done, Guest, until_there


def test_python_subprocesses_and_descriptors_arrive_in_the_order_they_were_written(guest: Guest) -> None:
    code = "import os, subprocess, sys\nfor i in range(5):\n    print('a', i)\n    subprocess.run(['echo', f'b {i}'])\n    os.write(1, b'c %d\\n' % i)\n    print('d', i, file=sys.stderr)\n    os.system(f'echo e {i}')"
    expected = [(s, f"{c} {i}") for i in range(5) for s, c in (("stdout", "a"), ("stdout", "b"), ("stdout", "c"), ("stderr", "d"), ("stdout", "e"))]
    assert guest.run(code).lines == expected


def test_a_line_begun_by_print_and_finished_on_the_descriptor_is_one_line(guest: Guest) -> None:
    assert guest.run("import sys, os\nprint('abc', end='', flush=True)\nos.write(1, b'def\\n')").lines == [("stdout", "abcdef")]


def test_a_million_prints_are_cheap_and_complete(guest: Guest) -> None:
    done = guest.run("for i in range(1_000_000): print(i)", 120)
    assert done.stdout == [str(i) for i in range(1_000_000)]
    assert len(done.outputs) < 2_000


def test_an_unfinished_line_is_told_after_a_silence_and_marked(guest: Guest, tmp_path: Path) -> None:
    number = guest.begin(f"print('working', end='')\n{until_there(tmp_path / 'heard')}print(' done')")
    first = guest.wait_for(Outputs)
    (tmp_path / "heard").touch()
    assert (first.lines, first.partial) == (["working"], True)
    done = guest.finish(number)
    assert [(o.lines, o.partial) for o in done.outputs] == [([" done"], False)]


def test_a_line_is_told_at_once_while_the_instruction_goes_on(guest: Guest, tmp_path: Path) -> None:
    number = guest.begin(f"for i in range(3):\n    print(i)\n{until_there(tmp_path / 'heard')}")
    heard: list[str] = []
    while heard != ["0", "1", "2"]:
        heard += guest.wait_for(Outputs).lines
    (tmp_path / "heard").touch()
    guest.finish(number)


def test_the_end_flushes_an_unfinished_line(guest: Guest) -> None:
    done = guest.run("print('x', end='')")
    assert [(o.lines, o.partial) for o in done.outputs] == [(["x"], True)]
    assert guest.run("print('y')").stdout == ["y"]


def test_what_a_program_wrote_last_comes_before_the_end(guest: Guest) -> None:
    for number in range(30):
        done = guest.run(f"import os\nprint('begun', end=' ')\nos.system('echo {number}; echo late >&2')")
        assert (done.stdout, done.stderr) == ([f"begun {number}"], ["late"])
        assert all(output.instruction == done.end.instruction for output in done.outputs)


def test_a_line_over_the_limit_comes_in_pieces(guest: Guest) -> None:
    done = guest.run("print('é' * 100_000)\nprint('next')")
    assert all(len(line.encode()) <= 65_536 for o in done.outputs for line in o.lines)
    assert done.stdout == ["é" * 100_000, "next"]


def test_carriage_returns_stay_and_odd_bytes_are_replaced(guest: Guest) -> None:
    assert guest.run("import os\nos.write(1, b'10%\\r20%\\n\\xff\\xfe\\n')").stdout == ["10%\r20%", "\ufffd\ufffd"]


def test_a_character_split_between_writes_is_put_together(guest: Guest) -> None:
    assert guest.run("import os, time\nos.write(1, b'\\xf0\\x9f'); time.sleep(0.02); os.write(1, b'\\x92\\xa9\\n')").stdout == ["\U0001f4a9"]


def test_lone_surrogates_and_nul_do_not_hurt(guest: Guest) -> None:
    assert guest.run("print('\\ud800 \\x00|')").stdout == ["? \x00|"]


def test_the_stream_object_looks_like_one(guest: Guest) -> None:
    code = "import sys\nsys.stdout.buffer.write(b'by')\nsys.stdout.buffer.write(b'tes\\n')\n(sys.stdout.fileno(), sys.stderr.fileno(), sys.stdout.isatty(), sys.stdout.encoding, sys.stdout.writable())"
    done = guest.run(code)
    assert done.end.value == "(1, 2, False, 'utf-8', True)"
    assert done.stdout == ["bytes"]
    assert guest.run("sys.stdout.write(3)").end.error_name == "TypeError"


def test_output_past_the_limit_is_dropped_counted_and_said(fresh: Guest) -> None:
    fresh.send(Setup({}, {"output_bytes_max": 1000}))
    for code in ("for i in range(100_000): print('x' * 99)", "import os\nfor i in range(1000): os.write(1, b'y' * 10_000)"):
        done = fresh.run(code)
        assert sum(len(line) + 1 for line in done.stdout) <= 1001
        assert done.end.dropped_bytes == 10_000_000 - 1000
        assert "dropped" in (done.end.note or "")
    assert fresh.run("print('again')").stdout == ["again"]


def test_a_closed_stdout_is_back_for_the_next_instruction(guest: Guest) -> None:
    assert guest.run("import sys; sys.stdout.close(); print('lost')").end.error_name == "ValueError"
    assert guest.run("print('back')").stdout == ["back"]
    guest.run("import os; os.close(1); os.close(2)")
    assert guest.run("import os; os.write(1, b'fd\\n'); os.write(2, b'err\\n')").lines == [("stdout", "fd"), ("stderr", "err")]


def test_a_replaced_stdout_is_the_users_own(fresh: Guest) -> None:
    assert fresh.run("import sys, io\nsys.stdout = mine = io.StringIO()\nprint('into mine')").lines == []
    assert fresh.run("print('again')").end.end == "value"
    assert fresh.value("mine.getvalue()") == "'into mine\\nagain\\n'"


def test_output_of_a_thread_is_attributed(fresh: Guest) -> None:
    code = "import threading\ngo, went = threading.Event(), threading.Event()\ndef f():\n    print('first')\n    go.wait(5); go.clear()\n    print('second'); went.set()\n    go.wait(5)\n    print('third')\nt = threading.Thread(target=f); t.start()\nimport time; time.sleep(0.1)"
    first = fresh.begin(code)
    assert [(o.instruction, o.origin, o.lines) for o in fresh.finish(first).outputs] == [(first, None, ["first"])]
    second = fresh.begin("go.set(); went.wait(5)")
    assert [(o.instruction, o.origin, o.lines) for o in fresh.finish(second).outputs] == [(second, first, ["second"])]
    fresh.run("threading.Timer(0.2, go.set).start()")
    third = fresh.wait_for(Outputs)
    assert (third.instruction, third.origin, third.lines) == (None, first, ["third"])


def test_lines_of_threads_are_not_mixed(guest: Guest) -> None:
    code = "import threading\ndef f(c):\n    for _ in range(2000): print(c * 30)\nts = [threading.Thread(target=f, args=(c,)) for c in 'abcd']\n[t.start() for t in ts]; [t.join() for t in ts];"
    lines = guest.run(code).stdout
    assert len(lines) == 8000
    assert all(len(line) == 30 and len(set(line)) == 1 for line in lines)


def test_a_writer_waits_while_the_keeper_does_not_acknowledge(fresh: Guest) -> None:
    fresh.auto_ack = False
    number = fresh.begin("for i in range(300_000): print('x' * 99)")
    while fresh.pump(1.0):
        pass
    kept = sum(len(o.lines) for o in fresh.heard if isinstance(o, Outputs))
    assert 10_000 < kept < 120_000
    fresh.auto_ack = True
    fresh.ack()
    assert len(fresh.finish(number, 60).stdout) == 300_000


def test_nothing_comes_between_frozen_and_go(fresh: Guest) -> None:
    fresh.run(
        "import threading, time\ndef f():\n    while True: print('tick'); time.sleep(0.005)\nthreading.Thread(target=f, daemon=True).start()\nprint('part', end='')"
    )
    fresh.send(Freeze(9))
    assert fresh.wait_for(Frozen).token == 9
    assert not fresh.pump(0.3)
    fresh.heard.clear()
    fresh.send(Freeze(10))
    assert fresh.wait_for(Frozen).token == 10
    fresh.send(Go(time.time_ns()))
    assert abs(fresh.wait_for(Thawed).drift_ns) < 10**9
    fresh.wait_for(Outputs, lambda said: "tick" in said.lines)  # the end of a line that the freeze cut may come first


def test_displays_are_bounded_too(fresh: Guest) -> None:
    fresh.send(Setup({}, {"display_bytes_max": 1000}))
    done = fresh.run("from IPython.display import HTML\ndisplay(HTML('x' * 2000))")
    assert done.displays == []
    assert "left out" in done.stderr[0]


@pytest.mark.parametrize("code", ["warnings.warn('careful')", "logging.warning('careful')"])
def test_warnings_and_logging_go_to_stderr(guest: Guest, code: str) -> None:
    assert any("careful" in line for line in guest.run("import warnings, logging\n" + code).stderr)


def lines_of(done: Done) -> list[str]:
    return done.stdout


def test_a_daemon_that_outlives_its_interpreter_still_speaks(fresh: Guest) -> None:
    fresh.run("import subprocess, os\nsubprocess.Popen(['sh', '-c', 'sleep 0.5; echo still here'], start_new_session=True)\nos._exit(1)")
    assert fresh.wait_for(Outputs).lines == ["still here"]


def test_acknowledging_too_much_is_not_fatal(fresh: Guest) -> None:
    fresh.send(Ack(10_000))
    assert fresh.value("1") == "1"
