"""Ends of every kind, and an interpreter that dies of it or does not."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from everforge.wire.messages import End, Freeze, Frozen, Go, Hello, Interrupt, Kill, Outputs, Setup, Thawed

from .driver import PROGRAM, Guest

NEW = "a new interpreter began"


def wait_for_line(guest: Guest, line: str) -> None:
    guest.wait_for(Outputs, lambda o: line in o.lines)


def children_of(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# --- ends of an interpreter -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("import os; os._exit(4)", "exited with status 4"),
        ("import ctypes; ctypes.string_at(0)", "killed by SIGSEGV"),
        ("import os; os.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("import os; os.abort()", "killed by SIGABRT"),
        ("import os; os.closerange(3, 4096)", "connection"),
        (
            "import os, stat\nfor fd in range(600, 700):\n"
            "    if os.path.exists(f'/proc/self/fd/{fd}') and stat.S_ISSOCK(os.fstat(fd).st_mode): os.write(fd, b'garbage' * 9)",
            "broke the protocol",
        ),
    ],
)
def test_a_dead_interpreter_is_said_so_and_the_next_instruction_runs_in_a_new_one(fresh: Guest, code: str, how: str) -> None:
    fresh.run("x = 1")
    number = fresh.begin("print('before')\n" + code)
    done = fresh.finish(number)
    assert (done.end.end, done.end.error_name) == ("died", "InterpreterDied")
    assert how in (done.end.error_message or "")
    assert done.stdout == ["before"]
    after = fresh.run("x")
    assert (after.end.end, after.end.error_name) == ("error", "NameError")
    assert NEW in (after.end.note or "")
    assert fresh.run("2").end.note is None


def test_an_interpreter_that_dies_between_instructions_is_replaced(fresh: Guest) -> None:
    fresh.run("import os, threading\nthreading.Timer(0.1, os._exit, (3,)).start()")
    time.sleep(0.5)
    end = fresh.run("1").end
    assert end.value == "1"
    assert NEW in (end.note or "")


def test_every_line_printed_before_a_crash_is_told(fresh: Guest) -> None:
    done = fresh.run("import ctypes, sys\nfor i in range(1000): print(i)\nprint('last', end='')\nctypes.string_at(0)")
    assert done.end.end == "died"
    assert done.stdout == [*map(str, range(1000)), "last"]


def test_files_survive_a_dead_interpreter(fresh: Guest) -> None:
    fresh.run("open('kept.txt', 'w').write('text')\nimport os; os._exit(0)")
    assert fresh.value("open('kept.txt').read()") == "'text'"


def test_a_file_of_the_users_named_like_a_module_does_not_stop_the_next_interpreter(fresh: Guest) -> None:
    fresh.run("for n in ('random', 'json', 'IPython', 'socket'): open(n + '.py', 'w').write('raise ImportError(1)')\nimport os; os._exit(0)")
    assert fresh.value("1") == "1"


# --- interrupt and kill ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time; time.sleep(60)",
        "import asyncio; await asyncio.sleep(60)",
        "class S:\n    def __repr__(self):\n        while True: pass\nS()",
        "!sleep 60",
        "import subprocess; subprocess.run(['sleep', '60'])",
        "import threading; threading.Event().wait()",
        "%%bash\nsleep 60",
    ],
)
def test_an_interrupt_ends_the_instruction_and_keeps_the_variables(guest: Guest, code: str) -> None:
    guest.run("kept = 'alive'")
    number = guest.begin(f"print('begun')\n{code}" if not code.startswith("%%") else code)
    if code.startswith("%%"):
        time.sleep(0.5)
    else:
        wait_for_line(guest, "begun")
        time.sleep(0.1)
    guest.send(Interrupt(number))
    end = guest.finish(number, 5).end
    assert end.end == "interrupted", end
    assert guest.value("kept") == "'alive'"


def test_an_interrupt_for_an_instruction_that_is_over_is_left_alone(guest: Guest) -> None:
    number = guest.begin("1")
    guest.finish(number)
    guest.send(Interrupt(number))
    assert guest.value("sum(range(100_000))") == "4999950000"


def slow_start(guest: Guest, tmp_path: Path, code: str) -> None:
    """From now on interpreters do this before they are ready."""
    (tmp_path / "sitecustomize.py").write_text(f"import os, pathlib, time\nhere = pathlib.Path({str(tmp_path)!r})\n{code}")
    guest.send(Setup({"PYTHONPATH": str(tmp_path)}, {}))
    guest.run("import os; os._exit(0)")


@pytest.mark.parametrize("order", [Interrupt, Kill])
def test_an_instruction_that_waits_for_an_interpreter_can_be_ended(fresh: Guest, tmp_path: Path, order: type[Interrupt | Kill]) -> None:
    slow_start(fresh, tmp_path, "while not (here / 'go').exists(): time.sleep(0.01)")
    number = fresh.begin("open('ran', 'w')")
    fresh.send(order(number))
    end = fresh.finish(number).end
    assert (end.end, "it had not begun" in (end.note or "")) == ("interrupted", True)
    (tmp_path / "go").touch()
    assert fresh.value("2") == "2"
    assert not (tmp_path / "ran").exists()


def test_an_interpreter_that_never_gets_ready_is_replaced(tmp_path: Path) -> None:
    before, agent, after = PROGRAM.partition("from everforge.guest.agent")
    quick = f"{before}from everforge.guest import supervisor; supervisor.START_SECONDS_MAX = 6.0; {agent}{after}"
    fresh = Guest(tmp_path, [sys.executable, "-I", "-S", "-c", quick])
    try:
        fresh.attach()
        slow_start(fresh, tmp_path, "if not (here / 'tried').exists(): (here / 'tried').touch(); time.sleep(600)")
        end = fresh.run("2").end
        assert end.value == "2"
        assert "every process was ended, because no interpreter could be started beside them" in (end.note or "")
    finally:
        fresh.close()


def test_an_interrupt_kills_the_foreground_command_but_not_an_older_daemon(fresh: Guest) -> None:
    fresh.run("import subprocess, time\ndaemon = subprocess.Popen(['sleep', '60']); time.sleep(0.1)")
    number = fresh.begin("print('begun'); front = subprocess.Popen(['sleep', '60']); front.wait()")
    wait_for_line(fresh, "begun")
    time.sleep(0.2)
    fresh.send(Interrupt(number))
    assert fresh.finish(number).end.end == "interrupted"
    assert fresh.value("front.wait(5) != 0, daemon.poll()") == "(True, None)"


def test_a_swallowed_interrupt_leaves_only_the_kill(fresh: Guest) -> None:
    fresh.run("kept = 1")
    number = fresh.begin(
        "import time; print('begun')\nwhile True:\n    try:\n        while True: time.sleep(0.01)\n    except BaseException: print('swallowed')"
    )
    wait_for_line(fresh, "begun")
    fresh.send(Interrupt(number))
    wait_for_line(fresh, "swallowed")
    fresh.send(Kill(number))
    end = fresh.finish(number).end
    assert end.end == "died"
    assert "killed" in (end.error_message or "")
    after = fresh.run("kept").end
    assert after.error_name == "NameError"
    assert NEW in (after.note or "")


def test_a_kill_takes_the_processes_of_the_interpreter_with_it(fresh: Guest, tmp_path: Path) -> None:
    number = fresh.begin("import subprocess\np = subprocess.Popen(['sleep', '60'])\nprint(p.pid)\np.wait()")
    pid = int(fresh.wait_for(Outputs).lines[0])
    fresh.send(Kill(number))
    fresh.finish(number)
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(f"/proc/{pid}").exists()


def test_a_kill_for_another_instruction_does_nothing(guest: Guest) -> None:
    guest.run("kept = 2")
    guest.send(Kill(10_000))
    assert guest.value("kept") == "2"


# --- signals --------------------------------------------------------------------------------------------------------------------------


def test_handlers_of_the_users_work(guest: Guest) -> None:
    code = "import signal, os\ngot = []\nsignal.signal(signal.SIGUSR1, lambda n, f: got.append(n))\nos.kill(os.getpid(), signal.SIGUSR1)\ngot == [signal.SIGUSR1], signal.getsignal(signal.SIGUSR1).__name__"
    assert guest.value(code) == "(True, '<lambda>')"


def test_an_alarm_that_raises_hits_the_users_code(guest: Guest) -> None:
    code = "import signal, time\ndef late(n, f): raise TimeoutError('alarm')\nsignal.signal(signal.SIGALRM, late)\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\ntime.sleep(5)"
    end = guest.run(code).end
    assert (end.end, end.error_name) == ("error", "TimeoutError")


def test_an_alarm_that_raises_between_instructions_hurts_nobody(guest: Guest) -> None:
    guest.run("signal.setitimer(signal.ITIMER_REAL, 0.05)")
    time.sleep(0.2)
    assert guest.value("1") == "1"


def test_alarms_at_any_moment_never_lose_an_end(fresh: Guest) -> None:
    fresh.run(
        "import signal\nclass Ring(Exception): pass\ndef ring(n, f): raise Ring\nsignal.signal(signal.SIGALRM, ring)\nsignal.setitimer(signal.ITIMER_REAL, 0.001, 0.0007)"
    )
    for _ in range(300):
        end = fresh.run("print('x' * 50); 1").end
        assert end.end in ("value", "error")


def test_an_own_handler_of_the_interrupt_is_used(fresh: Guest) -> None:
    fresh.run("import signal, time\nhits = []\nsignal.signal(signal.SIGINT, lambda n, f: hits.append(1))")
    number = fresh.begin("print('begun')\nwhile not hits: time.sleep(0.01)\n'handled'")
    wait_for_line(fresh, "begun")
    fresh.send(Interrupt(number))
    assert fresh.finish(number).end.value == "'handled'"


# --- no keyboard, forks, processes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code", ["input('? ')", "import getpass; getpass.getpass()", "import sys; sys.stdin.readline()", "sys.stdin.read()", "list(sys.stdin)"]
)
def test_waiting_for_a_keyboard_is_refused_with_a_reason(guest: Guest, code: str) -> None:
    assert "a machine has no keyboard" in (guest.run(code).end.error_message or "")


def test_a_subprocess_finds_empty_input(guest: Guest) -> None:
    assert guest.run("!cat").end.end == "value"


def test_a_forked_process_that_runs_out_of_its_instruction_says_nothing_to_the_agent(guest: Guest) -> None:
    done = guest.run("import os\npid = os.fork()\nprint('child' if pid == 0 else 'parent')\nif pid: os.waitpid(pid, 0)\npid == 0")
    assert done.end.value == "False"
    assert sorted(done.stdout) == ["child", "parent"]
    done = guest.run("pid = os.fork()\nif pid == 0: raise SystemExit(7)\nos.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])")
    assert done.end.value == "7"


def test_multiprocessing_works_with_functions_of_the_machine(guest: Guest) -> None:
    code = "import multiprocessing as mp\ndef double(n):\n    print('in a worker')\n    return n * 2\nwith mp.get_context('fork').Pool(2) as pool: r = pool.map(double, range(4))\nr"
    done = guest.run(code)
    assert done.end.value == "[0, 2, 4, 6]"
    assert done.stdout == ["in a worker"] * 4
    assert guest.value("import math\nwith mp.get_context('spawn').Pool(1) as pool: r = pool.map(math.sqrt, [4.0])\nr") == "[2.0]"


def test_no_thread_of_ours_makes_fork_warn(guest: Guest) -> None:
    code = "import os, warnings\nprint('x', end='')\nwarnings.simplefilter('error')\npid = os.fork()\nif pid == 0: os._exit(0)\nos.waitpid(pid, 0)[1]"
    assert guest.value(code) == "0"
    guest.run("warnings.resetwarnings()")


def test_no_descriptor_of_the_agents_reaches_the_user(guest: Guest) -> None:
    found = eval(guest.value("import os, subprocess\n[fd for fd in range(4096) if os.path.lexists(f'/proc/self/fd/{fd}')]") or "")
    assert len([fd for fd in found if fd >= 600]) == 3  # the channel, and copies of 1 and 2
    links = eval(
        guest.value("[os.readlink(f'/proc/self/fd/{fd}').split(':')[0] for fd in range(600, 700) if os.path.lexists(f'/proc/self/fd/{fd}')]") or ""
    )
    assert sorted(links) == ["pipe", "pipe", "socket"]
    assert guest.run("subprocess.run(['ls', '/proc/self/fd'], close_fds=False)").stdout[:3] == ["0", "1", "2"]
    assert not [fd for fd in guest.run("subprocess.run(['ls', '/proc/self/fd'], close_fds=False)").stdout if int(fd) >= 600]


def test_an_async_task_goes_on_in_the_next_instruction_that_awaits(guest: Guest) -> None:
    guest.run(
        "import asyncio\nseen = []\nasync def count():\n    for i in range(100): seen.append(i); await asyncio.sleep(0.001)\ntask = asyncio.ensure_future(count())\nawait asyncio.sleep(0.01)"
    )
    assert guest.value("await task\nlen(seen)") == "100"


# --- settings ---------------------------------------------------------------------------------------------------------------------------


def test_setup_changes_environment_and_limits_for_this_and_the_next_interpreter(fresh: Guest) -> None:
    fresh.send(Setup({"COLOUR": "red"}, {"open_files": 77, "memory_mb": 4096}))
    seen = "import os, resource\nos.environ['COLOUR'], resource.getrlimit(resource.RLIMIT_NOFILE)"
    assert fresh.value(seen) == "('red', (77, 77))"
    fresh.run("import os; os._exit(0)")
    assert fresh.value(seen) == "('red', (77, 77))"


def test_a_memory_limit_gives_a_memory_error_and_the_machine_lives(fresh: Guest) -> None:
    fresh.send(Setup({}, {"memory_mb": 512}))
    fresh.run("kept = 1")
    assert fresh.run("b = bytearray(2 * 1024**3)").end.error_name == "MemoryError"
    assert fresh.run("l = []\nwhile True: l.append(bytearray(10_000_000))").end.error_name == "MemoryError"
    assert fresh.value("del l\nkept") == "1"


def test_nothing_of_ours_lies_in_the_users_home(fresh: Guest) -> None:
    assert fresh.value("import os; os.listdir(os.path.expanduser('~'))") == "[]"


def test_limits_of_another_time_are_ignored(fresh: Guest) -> None:
    fresh.send(Setup({}, {"telepathy_max": 3, "open_files": -5}))
    assert fresh.value("1") == "1"


# --- entropy ----------------------------------------------------------------------------------------------------------------------------


def test_entropy_reseeds_what_the_process_shares_and_its_absence_does_not(fresh: Guest) -> None:
    fresh.run("import random, numpy, tempfile, uuid\nrandom.seed(1); numpy.random.seed(1)\nuuid.uuid1()")
    draw = "(random.random(), numpy.random.random())"
    before = fresh.value(f"random.seed(1); numpy.random.seed(1)\n{draw}")

    def thaw(entropy: str | None) -> str | None:
        fresh.run("random.seed(1); numpy.random.seed(1)")
        fresh.send(Freeze(1))
        fresh.wait_for(Frozen)
        fresh.send(Go(time.time_ns(), entropy))
        fresh.wait_for(Thawed)
        return fresh.value(draw)

    assert thaw(None) == before
    one, two = thaw("11" * 32), thaw("22" * 32)
    assert len({before, one, two}) == 3
    assert thaw("11" * 32) == one


def test_entropy_reaches_an_interpreter_in_the_middle_of_an_instruction(fresh: Guest) -> None:
    number = fresh.begin(
        "import random, time\nrandom.seed(1); print('seeded')\nwhile (state := random.getstate()) == random.getstate() and not globals().get('stop'):\n    time.sleep(0.01)\n    if random.getstate() != state: break\n'changed'"
    )
    wait_for_line(fresh, "seeded")
    fresh.send(Freeze(1))
    fresh.wait_for(Frozen)
    fresh.send(Go(time.time_ns(), "33" * 32))
    fresh.wait_for(Thawed)
    assert fresh.finish(number, 5).end.value == "'changed'"


# --- standstill -------------------------------------------------------------------------------------------------------------------------


def test_everything_of_the_users_stands_still_until_go(fresh: Guest) -> None:
    fresh.run(
        "import subprocess, threading, time, os, signal\nopen('ticks', 'w').close()\n"
        "p = subprocess.Popen(['sh', '-c', 'while true; do echo x >> ticks; sleep 0.01; done'])\n"
        "stopped = subprocess.Popen(['sleep', '60']); time.sleep(0.1); os.kill(stopped.pid, signal.SIGSTOP); time.sleep(0.1)\nhome = os.getcwd()"
    )
    home = Path(eval(fresh.value("home") or ""))
    fresh.send(Freeze(1))
    fresh.wait_for(Frozen)
    size = (home / "ticks").stat().st_size
    time.sleep(0.2)
    assert (home / "ticks").stat().st_size == size
    fresh.send(Go(time.time_ns()))
    fresh.wait_for(Thawed)
    assert fresh.value("time.sleep(0.2); open(f'/proc/{stopped.pid}/stat').read().split()[2]") == "'T'"
    assert (home / "ticks").stat().st_size > size


def test_a_freeze_in_the_middle_of_an_instruction_lets_it_go_on_afterwards(fresh: Guest) -> None:
    number = fresh.begin("import time\nfor i in range(40): print(i); time.sleep(0.01)\n'end'")
    wait_for_line(fresh, "0")
    fresh.send(Freeze(1))
    fresh.wait_for(Frozen)
    hello = fresh.attach(epoch=2)
    assert (hello.frozen, hello.running) == (True, number)
    fresh.send(Go(time.time_ns()))
    fresh.wait_for(Thawed)
    assert fresh.finish(number).end.value == "'end'"


def test_an_instruction_that_comes_while_frozen_runs_after_go(fresh: Guest) -> None:
    fresh.send(Freeze(1))
    fresh.wait_for(Frozen)
    number = fresh.begin("'ran'")
    assert not fresh.pump(0.2)
    fresh.send(Go(time.time_ns()))
    assert fresh.finish(number).end.value == "'ran'"


# --- the agent --------------------------------------------------------------------------------------------------------------------------


def test_an_idle_agent_does_not_spin(fresh: Guest) -> None:
    fresh.run("1")

    def cpu_ticks() -> int:
        total = 0
        for pid in [fresh.process.pid, *children_of(fresh.process.pid)]:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        return total

    before = cpu_ticks()
    time.sleep(1)
    assert cpu_ticks() - before <= 1


def test_hanging_up_ends_everything(tmp_path: Path) -> None:
    guest = Guest(tmp_path)
    guest.attach()
    pid = int(guest.value("import os, subprocess\np = subprocess.Popen(['sleep', '60'], start_new_session=True)\np.pid") or "")
    assert guest.close() == 0
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(f"/proc/{pid}").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes()


def test_garbage_on_the_link_ends_the_agent_with_a_code_of_its_own(tmp_path: Path) -> None:
    guest = Guest(tmp_path)
    guest.attach()
    os.write(guest.to_guest, b"this is no record, whatever it is")
    assert guest.process.wait(10) == 65
    guest.close()


def test_an_interpreter_counts_up(fresh: Guest) -> None:
    fresh.run("import os; os._exit(0)")
    fresh.run("1")
    hello: Hello = fresh.attach()
    assert hello.interpreter == 2
    assert hello.last == 1


def test_instructions_wait_for_each_other_in_order_and_too_many_are_refused(fresh: Guest) -> None:
    fresh.run("n = 0")
    numbers = [fresh.begin("import time; time.sleep(0.3)")] + [fresh.begin(f"n = n * 10 + {i}\nn") for i in range(1, 20)]
    ends = {n: fresh.wait_for(End, lambda e, n=n: e.instruction == n) for n in numbers}
    assert ends[numbers[3]].value == "123"
    refused = [e for e in ends.values() if e.error_name == "QueueFull"]
    assert 1 <= len(refused) <= 4


def test_many_processes_together_are_kept_within_the_memory(fresh: Guest) -> None:
    fresh.send(Setup({}, {"memory_mb": 400}))
    fresh.run("kept = 1")
    code = (
        "import subprocess, sys, time\n"
        "hog = 'import time; b = bytearray(150_000_000); time.sleep(30)'\n"
        "ps = [subprocess.Popen([sys.executable, '-c', hog]) for _ in range(4)]\n"
        "deadline = time.monotonic() + 15\n"
        "while not any(p.poll() for p in ps) and time.monotonic() < deadline: time.sleep(0.05)\n"
        "time.sleep(1)\n[p.poll() for p in ps].count(None)"
    )
    end = fresh.run(code, 30).end
    assert end.value in ("0", "1", "2")
    assert "out of memory" in (end.note or "")
    assert fresh.value("[p.kill() for p in ps]\nkept") == "1"
