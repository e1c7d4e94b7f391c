"""Ten instructions that build everything a Python process can hold, and a check that all of it goes on."""

from __future__ import annotations

import time

from everforge.machines.service import Machines
from everforge.wire.events import Ended

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


async def build(machines: Machines, name: str) -> None:
    for code in BUILD:
        await ok(machines, name, code)


async def check_round(machines: Machines, name: str, round: int) -> None:
    assert (await ok(machines, name, CHECK.format(now=time.time()))).value == str(round + 1)
