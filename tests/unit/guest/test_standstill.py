"""Standing still for a save: what cannot be stopped is said so at once, and a copy of a machine draws numbers of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from everforge.guest import entropy, processes
from everforge.guest.processes import Process
from everforge.wire.messages import CannotFreeze, Freeze, Frozen, Go, Setup, Thawed

from .driver import Guest

# A parent in vfork: its child waits in the middle of posix_spawn for somebody to open the other end of a pipe.
IN_VFORK = """
import os, time
os.mkfifo('pipe')
pid = os.fork()
if pid == 0:
    os.posix_spawn('/bin/true', ['true'], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, 'pipe', os.O_RDONLY, 0)])
    os._exit(7)
while ') D ' not in open(f'/proc/{pid}/stat').read(): time.sleep(0.01)
"""
# The same by hand, but its child is a child of somebody else: then nothing shows what the parent waits for.
IN_VFORK_FOR_NOBODY = """
import ctypes, os, platform, signal, time
CLONE_VFORK, CLONE_PARENT = 0x4000, 0x8000
pid = os.fork()
if pid == 0:
    clone = {'x86_64': 56, 'aarch64': 220}[platform.machine()]
    if ctypes.CDLL(None).syscall(clone, CLONE_VFORK | CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0) == 0: time.sleep(60)
    os._exit(0)
while ') D ' not in open(f'/proc/{pid}/stat').read(): time.sleep(0.01)
ticks = 0
import threading
def count():
    global ticks
    while True: ticks += 1; time.sleep(0.001)
threading.Thread(target=count, daemon=True).start()
pid
"""


def freeze(guest: Guest, token: int) -> None:
    guest.send(Freeze(token))
    assert guest.wait_for(Frozen, seconds=5).token == token


def test_a_process_in_vfork_stands_still_with_its_child(fresh: Guest) -> None:
    fresh.run(IN_VFORK)
    freeze(fresh, 1)
    fresh.send(Go(time.time_ns()))
    fresh.wait_for(Thawed)
    assert fresh.value("os.close(os.open('pipe', os.O_WRONLY)); os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])") == "7"


def test_what_cannot_be_stopped_is_named_and_everything_else_goes_on(fresh: Guest) -> None:
    pid = fresh.value(IN_VFORK_FOR_NOBODY)
    fresh.send(Freeze(3))
    refused = fresh.wait_for(CannotFreeze, seconds=5)
    assert refused.token == 3
    assert f"process {pid} (" in refused.why
    assert "cannot be interrupted" in refused.why
    assert fresh.value("before = ticks; time.sleep(0.2); ticks > before") == "True"
    fresh.run("import subprocess; subprocess.run(['pkill', '-9', '-P', str(os.getpid())])")
    freeze(fresh, 4)


# Its first thread has ended, and another counts on.
WITHOUT_ITS_FIRST_THREAD = """
import ctypes, platform, sys, threading, time
def count():
    n = 0
    while True:
        n += 1
        with open(sys.argv[1], 'w') as file: file.write(str(n))
        time.sleep(0.001)
threading.Thread(target=count).start()
time.sleep(0.1)
ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[platform.machine()], 0)
"""


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_process_whose_first_thread_has_ended_lives_is_stopped_and_can_be_ended(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WITHOUT_ITS_FIRST_THREAD, str(tmp_path / "count")]) as started:

        def seen() -> Process:
            found = processes.read_process(started.pid)
            assert found is not None
            return found

        try:
            until(lambda: ") Z " in Path(f"/proc/{started.pid}/stat").read_text())
            assert seen().state in "RSD"
            assert seen().rss_pages > 0
            os.kill(started.pid, signal.SIGSTOP)
            until(lambda: seen().state == "T")
        finally:
            started.kill()
    assert processes.read_process(started.pid) is None


def test_a_process_whose_first_thread_has_ended_stands_still_with_the_others(fresh: Guest, tmp_path: Path) -> None:
    counted = tmp_path / "count"
    (tmp_path / "counting.py").write_text(WITHOUT_ITS_FIRST_THREAD)
    pid = fresh.value(f"import subprocess, sys\ncounting = subprocess.Popen([sys.executable, 'counting.py', {str(counted)!r}])\ncounting.pid")
    until(lambda: ") Z " in Path(f"/proc/{pid}/stat").read_text())
    freeze(fresh, 1)
    before = counted.read_text()
    time.sleep(0.1)
    assert counted.read_text() == before
    fresh.send(Go(time.time_ns()))
    fresh.wait_for(Thawed)
    until(lambda: counted.read_text() not in ("", before))
    fresh.run("counting.kill()")


# --- entropy ----------------------------------------------------------------------------------------------------------------------------

SEED = "5a" * 32


@pytest.fixture
def expected() -> Iterator[str]:
    """What `random` says first after SEED."""
    import random

    before = random.getstate()
    entropy.reseed(bytes.fromhex(SEED))
    yield repr(random.random())
    random.setstate(before)


def test_a_busy_interpreter_is_said_to_be_not_yet_reseeded_and_is_before_the_next_instruction(fresh: Guest, tmp_path: Path, expected: str) -> None:
    # A thread that keeps the interpreter's lock, as a long calculation in C may.
    hold = "def hold():\n    while not os.path.exists('go'): time.sleep(0.001)\n    open('held', 'w').close(); ctypes.PyDLL(None).usleep(2_500_000)"
    fresh.run(f"import ctypes, os, random, threading, time\nrandom.seed(1)\n{hold}\nthreading.Thread(target=hold).start()")
    (tmp_path / "go").touch()
    while not (tmp_path / "held").exists():
        time.sleep(0.001)
    freeze(fresh, 1)
    fresh.send(Go(time.time_ns(), SEED))
    number = fresh.begin("random.random()")
    assert not fresh.wait_for(Thawed).reseeded
    assert fresh.finish(number).end.value == expected


def test_an_interpreter_that_is_only_starting_is_reseeded_too(fresh: Guest, tmp_path: Path, expected: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"import os, random, time\nwhile not os.path.exists('{tmp_path}/go'): time.sleep(0.01)")
    fresh.send(Setup({"PYTHONPATH": str(tmp_path)}, {}))
    fresh.run("import os; os._exit(0)")  # and a new one starts
    freeze(fresh, 1)
    fresh.send(Go(time.time_ns(), SEED))
    (tmp_path / "go").touch()
    fresh.wait_for(Thawed)
    assert fresh.value("import random; random.random()") == expected


def test_a_generator_that_cannot_be_seeded_is_named(fresh: Guest) -> None:
    fresh.send(Setup({}, {}))
    fresh.run("import random; random.seed = None")
    freeze(fresh, 1)
    fresh.send(Go(time.time_ns(), SEED))
    assert fresh.wait_for(Thawed, seconds=5).reseeded
    note = fresh.run("1").end.note
    assert "random could not be seeded" in (note or "")


TWO_COPIES = """
import os, sqlite3, sys
from everforge.guest import entropy
db = sqlite3.connect(":memory:")
db.execute("select random()").fetchone()
for n in range(2):
    if os.fork() == 0:
        if sys.argv[1]: entropy.reseed(bytes([n] * 32))
        print(db.execute("select random()").fetchone()[0], sqlite3.connect(":memory:").execute("select hex(randomblob(8))").fetchone()[0])
        sys.stdout.flush()
        os._exit(0)
    os.wait()
"""


@pytest.mark.parametrize("seeded", ["", "seeded"])
def test_the_generator_that_all_connections_of_sqlite_share_is_seeded_anew(seeded: str) -> None:
    drawn = subprocess.run([sys.executable, "-c", TWO_COPIES, seeded], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert len(drawn) == 4
    assert len(set(drawn)) == (4 if seeded else 2)
