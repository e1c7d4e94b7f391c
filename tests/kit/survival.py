"""Ten instructions that build everything a Python process can hold, and a check that all of it goes on."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

from everforge.engine.gvisor.engine import Gvisor
from everforge.machines.service import Machines
from everforge.wire.events import Ended

from .folders import strangers
from .real import cgroups_of, descriptors, mounts_of, sandboxes_of
from .traces import Traces, traces_of

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
assert db.in_transaction and db.execute('select count(*) from note').fetchone() == (1 + rounds,), 'the transaction'
db.execute("insert into note values ('more')")
assert loop.run_until_complete(queue.get()) == 'waiting', 'the event loop'
loop.run_until_complete(queue.put('waiting'))
assert next(squares) == (5 + rounds) ** 2, 'the generator'
assert len(big) == 1_000_000 + 200_000 * rounds and big[-1] == 7 and counter.up() == 2 + rounds, 'the data'
assert abs(time.time() - {now}) < 5, 'the clock'
big += bytes(200_000); big[-1] = 7
rounds += 1
rounds
"""
FINISH = """
db.execute('commit'); db.close(); echo.stdin.close()
sqlite3.connect('notes.db').execute('select count(*) from note').fetchone()[0] - 1, echo.wait()
"""
WARM_ROUNDS = 5
REST_SECONDS = 2.0  # longer than the engine waits before it makes a sandbox ahead


async def ok(machines: Machines, name: str, code: str) -> Ended:
    ended = await machines.run(name, code)
    assert ended.end == "value", ended
    return ended


async def build(machines: Machines, name: str) -> None:
    for code in BUILD:
        await ok(machines, name, code)


async def check_round(machines: Machines, name: str, round: int) -> None:
    assert (await ok(machines, name, CHECK.format(now=time.time()))).value == str(round + 1)


async def finish(machines: Machines, name: str, rounds: int) -> None:
    """What was begun before the first sleep can be brought to its end."""
    assert (await ok(machines, name, FINISH)).value == f"({rounds}, 0)"


# --- while it sleeps -------------------------------------------------------------------------------------------------------------------------


async def check_nothing_runs_while_it_sleeps(machines: Machines, name: str, data: Path, *, with_cgroups: bool) -> None:
    """Hibernates it. Whatever was looked for afterwards was there before, so that the look is not in vain."""
    sandbox = str((await machines.get(name)).record.sandbox)
    before = traces_of(data, sandbox)
    assert len(before.processes) >= 3, f"sentry, gofer and what they started: {before.processes}"
    assert before.memory_bytes > 10_000_000
    assert before.files
    assert before.sockets
    assert bool(before.cgroups) == with_cgroups
    await machines.hibernate(name)
    assert (await machines.get(name)).state == "asleep"
    assert before.alive() == [], "a process of the sleeping machine runs on the host"
    assert traces_of(data, sandbox) == Traces(), "something of the sleeping machine is left on the host"


LAZY = {"threads": 8, "descriptors": 4}  # pools of threads fill when they are needed, and so does the packing process begin


async def live_through(machines: Machines, name: str, data: Path, rounds: int) -> None:
    """Sleep, wake and check, again and again; what is in use at rest is the same after all of them as after the first few."""
    at_rest: dict[str, int] = {}
    for round in range(rounds):
        await machines.hibernate(name)
        await check_round(machines, name, round)
        if round == WARM_ROUNDS:
            at_rest = await come_to_rest(machines, data)
    after = await come_to_rest(machines, data)
    grown = {what: (at_rest[what], count) for what, count in after.items() if count > at_rest[what] + LAZY.get(what, 0)}
    assert not grown, f"more in use after {rounds} rounds than after {WARM_ROUNDS}: {grown}"
    points = await machines.points(name)
    assert {str(p.snapshot) for p in points} <= {p.name for p in (data / "snapshots").iterdir()}
    assert strangers(data / "snapshots", {str(p.snapshot) for p in points}) == set(), "files of no point"


async def come_to_rest(machines: Machines, data: Path) -> dict[str, int]:
    """What is in use when nothing changes any more: sandboxes are made ahead some time after one was taken, log files come to their end."""
    since, found = time.monotonic(), in_use(data, machines)
    async with asyncio.timeout(30):
        while time.monotonic() < since + REST_SECONDS:
            await asyncio.sleep(0.1)
            if (now := in_use(data, machines)) != found:
                since, found = time.monotonic(), now
    return found


def in_use(data: Path, machines: Machines) -> dict[str, int]:
    assert isinstance(machines.forge.engine, Gvisor)
    outside_snapshots = [f for f in data.rglob("*") if f.relative_to(data).parts[0] != "snapshots"]
    return {
        "processes": len(sandboxes_of(data)),
        "descriptors": descriptors(),
        "the warden's descriptors": descriptors(machines.forge.engine.warden_pid),
        "threads": threading.active_count(),
        "cgroups": len(cgroups_of(data)),
        "mounts": len(mounts_of(data)),
        "files": len(outside_snapshots),
        "tasks": len(asyncio.all_tasks()),
    }
