"""Standing still for a save: what cannot be stopped is said so at once, and a copy of a machine draws numbers of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from everforge.guest import entropy
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
