"""Who must end when the sum of all memory is over the limit."""

from __future__ import annotations

import os
import time

import pytest

from everforge.guest import memory, processes, segments
from everforge.guest.limits import MIB
from everforge.guest.memory import choose
from everforge.guest.processes import Process
from everforge.wire.messages import Setup

from .driver import Guest

INTERPRETER = 3


def process(pid: int, rss_mb: int) -> Process:
    return Process(pid, "python3", "T", 1, pid, pid, 0, rss_mb * MIB // os.sysconf("SC_PAGE_SIZE"))


def chosen(sizes_mb: dict[int, int], used_mb: int, *, again: bool = False) -> list[int]:
    return [p.pid for p in choose([process(pid, size) for pid, size in sizes_mb.items()], INTERPRETER, used_mb, 500, again)]


def test_one_large_process_ends_and_the_others_stay() -> None:
    assert chosen({INTERPRETER: 50, 4: 60, 5: 400, 6: 10}, 520) == [5]


def test_as_many_end_as_make_some_room() -> None:
    assert chosen({INTERPRETER: 50, 4: 100, 5: 120, 6: 110, 7: 130}, 510) == [7]
    assert chosen({INTERPRETER: 50, 4: 100, 5: 120, 6: 110, 7: 130}, 610) == [7, 5]


def test_the_interpreter_ends_only_when_it_is_larger_than_the_others_together_or_alone() -> None:
    assert chosen({INTERPRETER: 450, 4: 60}, 510) == [INTERPRETER]
    assert chosen({INTERPRETER: 40}, 510) == [INTERPRETER]
    assert INTERPRETER not in chosen({INTERPRETER: 240, 4: 130, 5: 130}, 510)


def test_of_a_fork_bomb_all_end_but_the_interpreter() -> None:
    bomb = dict.fromkeys(range(10, 70), 20)
    assert sorted(chosen({INTERPRETER: 40, **bomb}, 510)) == sorted(bomb)


def test_memory_that_no_process_explains_ends_the_others_first() -> None:
    assert chosen({INTERPRETER: 40, 4: 10}, 510) == [4]


def test_a_second_time_it_is_no_use_to_end_them_one_by_one() -> None:
    assert chosen({INTERPRETER: 50, 4: 60, 5: 400, 6: 10}, 520, again=True) == [5, 4, 6]


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """By a guard over 500 MB that finds the interpreter and one more process, and nobody else."""
    killed: list[int] = []
    monkeypatch.setattr(processes, "send_everyone", lambda _: None)
    monkeypatch.setattr(processes, "user_processes", lambda: [process(INTERPRETER, 40), process(4, 60)])
    monkeypatch.setattr(processes, "kill_all", lambda found: killed.extend(p.pid for p in found))
    return killed


def test_memory_that_is_nobodys_goes_before_a_process_does_unless_it_is_filled_again_at_once(
    monkeypatch: pytest.MonkeyPatch, killed: list[int]
) -> None:
    used_mb = [510, 110, 510, 110]
    monkeypatch.setattr(memory, "_used_mb", lambda: (used_mb.pop(0), 2))
    monkeypatch.setattr(segments.Segments, "remove_orphans", lambda _: segments.Removed(4, 400))
    guard = memory.MemoryGuard()
    guard.memory_mb = 500
    first = guard.look(True, INTERPRETER)
    assert (first, killed) == (
        ([], "out of memory: 510 MB in use, 500 MB allowed; removed shared memory that no process was attached to: 4 segments, 400 MB"),
        [],
    )
    time.sleep(memory.RETURN_SECONDS + 0.1)
    again = guard.look(True, INTERPRETER)
    assert (again is not None and again.pids, killed) == ([4], [4])


def test_a_process_ends_when_removing_what_is_nobodys_is_not_enough(monkeypatch: pytest.MonkeyPatch, killed: list[int]) -> None:
    used_mb = [540, 520]
    monkeypatch.setattr(memory, "_used_mb", lambda: (used_mb.pop(0), 2))
    monkeypatch.setattr(segments.Segments, "remove_orphans", lambda _: segments.Removed(1, 20))
    guard = memory.MemoryGuard()
    guard.memory_mb = 500
    ended = guard.look(True, INTERPRETER)
    assert (ended is not None and ended.why.endswith(": 1 segment, 20 MB; killed the largest process, 4"), killed) == (True, [4])


def test_all_go_on_when_the_memory_is_back(fresh: Guest) -> None:
    fresh.send(Setup({}, {"memory_mb": 400}))
    code = (
        "import subprocess, sys, threading, time\nticks = 0\n"
        "def tick():\n    global ticks\n    while True: ticks += 1; time.sleep(0.01)\n"
        "threading.Thread(target=tick, daemon=True).start()\n"
        "def hog(mb): return subprocess.Popen([sys.executable, '-c', f'import time; b = bytearray(b\"x\") * ({mb} << 20); time.sleep(60)'])\n"
        "small, large = hog(100), hog(300)\nstatus = large.wait(30)\n"
        "state = lambda pid: open(f'/proc/{pid}/stat').read().split()[2]\n"
        "while state(small.pid) == 'T': time.sleep(0.01)\n"
        "before = ticks; time.sleep(0.2)\nalive = small.poll(); small.kill()\nstatus, alive, ticks > before"
    )
    done = fresh.run(code, 60)
    assert done.end.value == "(-9, None, True)", done.end
    assert "killed the largest process" in (done.end.note or "")
