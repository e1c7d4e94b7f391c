"""Must show 1: everything a Python process can hold goes on after a sleep, fifty times in a row, and nothing is left behind."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from everforge.wire.events import Ended
from kit.real import cgroups_of, descriptors, mounts_of, sandboxes_of

pytestmark = pytest.mark.gvisor

BUILD = [
    "import json, threading, time, sqlite3, subprocess, asyncio, itertools, os",
    "class Counter:\n    def __init__(self): self.n = 0\n    def up(self): self.n += 1; return self.n\ncounter = Counter()",
    "with open('poem.txt', 'w') as f:\n    for i in range(1000): print('line', i, file=f)\nhalf = open('poem.txt'); [half.readline() for _ in range(500)][-1]",
    "ticks = 0\ndef tick():\n    global ticks\n    while True:\n        ticks += 1\n        time.sleep(0.01)\nthread = threading.Thread(target=tick, daemon=True); thread.start()",
    "echo = subprocess.Popen(['cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)\necho.stdin.write('one\\n'); echo.stdin.flush(); echo.stdout.readline()",
    "db = sqlite3.connect('notes.db', isolation_level=None); db.execute('create table note(t)'); db.execute('begin'); db.execute(\"insert into note values ('kept')\"); db.in_transaction",
    "loop = asyncio.new_event_loop(); queue = asyncio.Queue(); loop.run_until_complete(queue.put('waiting')); queue.qsize()",
    "squares = (n * n for n in itertools.count()); [next(squares) for _ in range(5)]",
    "big = bytearray(1_000_000); big[-1] = 7; rounds = 0",
    "counter.up()",
]

CHECK = """
assert half.readline() == 'line %d\\n' % (500 + rounds), 'the half read file'
before = ticks; time.sleep(0.05); assert ticks > before, 'the thread'
echo.stdin.write('again %d\\n' % rounds); echo.stdin.flush(); assert echo.stdout.readline() == 'again %d\\n' % rounds, 'the subprocess'
assert db.in_transaction and db.execute('select count(*) from note').fetchone() == (1,), 'the transaction'
if rounds == 0: assert loop.run_until_complete(queue.get()) == 'waiting', 'the event loop'
assert next(squares) == (5 + rounds) ** 2, 'the generator'
assert big[-1] == 7 and counter.up() == 2 + rounds, 'the data'
assert abs(time.time() - {now}) < 5, 'the clock'
big += bytes(200_000); big[-1] = 7
rounds += 1
rounds
"""


async def ok(machines: Machines, name: str, code: str) -> Ended:
    ended = await machines.run(name, code)
    assert ended.end == "value", ended
    return ended


async def test_everything_goes_on_from_where_it_was(machines: Machines, data: Path) -> None:
    name = (await machines.create(NewMachine(tags={"kind": "survivor"}))).record.name
    for code in BUILD:
        await ok(machines, name, code)
    sandbox = str((await machines.get(name)).record.sandbox)
    assert any(sandbox in command for command in sandboxes_of(data).values()), "the test looks at the wrong thing"
    await machines.hibernate(name)
    assert (await machines.get(name)).state == "asleep"
    assert await machines.memory_bytes(name) == 0
    assert not [c for c in sandboxes_of(data).values() if sandbox in c], "a process of the sleeping machine runs on the host"
    assert not [c for c in cgroups_of(data) if sandbox in c], "a cgroup of the sleeping machine is left"
    assert not [f for f in data.rglob("*") if sandbox in f.name], "a file of its sandbox is left"
    assert (await ok(machines, name, CHECK.format(now=time.time()))).value == "1"


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_fifty_rounds_with_growing_data_leave_nothing_behind(machines: Machines, data: Path) -> None:
    name = (await machines.create(NewMachine())).record.name
    for code in BUILD:
        await ok(machines, name, code)
    marks: list[tuple[int, int, int, int]] = []
    for round in range(50):
        await machines.hibernate(name)
        assert (await ok(machines, name, CHECK.format(now=time.time()))).value == str(round + 1)
        await asyncio.sleep(0)
        marks.append((len(sandboxes_of(data)), descriptors(), len(cgroups_of(data)), len(mounts_of(data))))
    settled, last = marks[10:20], marks[-10:]
    for what, before, after in zip(
        ("processes", "descriptors", "cgroups", "mounts"), zip(*settled, strict=True), zip(*last, strict=True), strict=True
    ):
        assert max(after) <= max(before) + 2, f"{what} grew from {before} to {after}"
    points = await machines.points(name)
    assert {p.name for p in (data / "snapshots").iterdir()} == {str(p.snapshot) for p in points}
