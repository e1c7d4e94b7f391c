"""Forks of a live machine, compared; and how long the machine itself stood still for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from everforge.wire.events import Output

from .length import length
from .stepclock import StepClock

FORKS = length(20, 100)
SLOW_SECONDS = 1.0  # what everything but the save takes longer here, so that a machine which waits for any of it is found out
GAP_FACTOR = 3.0  # for many forks instead of one: a save on a shared disk takes its time, and many would take many times that
STATE = """
import random, uuid, tempfile, socket, secrets, sqlite3, threading, time, json, ssl, os
import numpy as np
random.seed(42); np.random.seed(42); random.random(); tempfile.gettempdir(); next(tempfile._get_candidate_names()); ssl.RAND_bytes(8)
db = sqlite3.connect(":memory:"); db.execute("select random()").fetchone()
data = {"answer": 42, "list": list(range(1000))}
open("note.txt", "w").write("from the source")
ticks = []
def tick():
    while True:
        ticks.append(time.monotonic()); time.sleep(0.005)
threading.Thread(target=tick, daemon=True).start()
"""
LONGEST_GAP = "time.sleep(0.05); gap = max(b - a for a, b in zip(ticks, ticks[1:])); ticks.clear(); gap"
LOOK = """
before = len(ticks); time.sleep(0.1)
print(json.dumps({
    "state": [data["answer"], len(data["list"]), open("note.txt").read(), len(ticks) > before],
    "random": random.random(), "numpy": float(np.random.random()), "uuid1": str(uuid.uuid1()), "uuid4": str(uuid.uuid4()),
    "secret": secrets.token_hex(8), "openssl": ssl.RAND_bytes(8).hex(), "temp": next(tempfile._get_candidate_names()), "host": socket.gethostname(),
    "sqlite": db.execute("select random()").fetchone()[0],
}))
"""
FRESH = """
import random, uuid, tempfile, socket, secrets, json, ssl
import numpy as np
print(json.dumps({
    "random": random.random(), "numpy": float(np.random.random()), "generator": float(np.random.default_rng().random()), "uuid1": str(uuid.uuid1()),
    "uuid4": str(uuid.uuid4()), "secret": secrets.token_hex(8), "openssl": ssl.RAND_bytes(8).hex(), "temp": next(tempfile._get_candidate_names()),
    "host": socket.gethostname(), "hash": hash("everforge"),
}))
"""
MUST_DIFFER = ("random", "numpy", "uuid1", "uuid4", "secret", "openssl", "temp", "host", "sqlite")


async def look(machines: Machines, name: str) -> dict[str, object]:
    number, _ = await machines.exec(name, LOOK, timeout_seconds=60)
    ended = await machines.result(name, number)
    assert ended.end == "value", ended
    lines = [line async for e in machines.read(name) if isinstance(e, Output) and e.instruction == number for line in e.lines]
    return json.loads(lines[-1])


def _late(act: Callable[..., Any], seconds: float) -> Callable[..., Any]:
    async def late(*args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(seconds)
        return await act(*args, **kwargs)

    return late


async def stand_still(machines: Machines, clock: StepClock, name: str, count: int) -> tuple[float, list[str]]:
    """Forks it and returns the longest time that its own thread saw nothing happen, held against the steps of that one save."""
    await machines.run(name, "ticks[:] = [time.monotonic()]")  # the first is here, and not left to a thread that may not get its turn before the save
    clock.forget()
    with ExitStack() as slowed:
        slowed.enter_context(patch.object(machines.forge.snapshots, "finish", _late(machines.forge.snapshots.finish, SLOW_SECONDS)))
        slowed.enter_context(patch.object(machines.forge.store, "create_together", _late(machines.forge.store.create_together, SLOW_SECONDS)))
        forks = [view.record.name for view in await machines.fork(name, count=count)]
    assert (clock.times("freeze"), clock.times("save"), clock.times("go")) == (1, 1, 1), "more than one save for all the forks"
    ended = await machines.run(name, LONGEST_GAP)
    assert ended.value is not None, ended
    gap = float(ended.value)
    assert gap > clock.seconds("save") / 2, "the thread does not see that its machine stands still"
    assert gap < clock.seconds("freeze", "save", "go") + SLOW_SECONDS / 2, "the source stood still for more than the save"
    return gap, [str(fork) for fork in forks]


async def fork_and_compare(machines: Machines, clock: StepClock) -> None:
    """`clock` hears the steps of these machines."""
    name = (await machines.create(NewMachine())).record.name
    assert (await machines.run(name, STATE, timeout_seconds=60)).end == "value"
    gap_of_one, (alone,) = await stand_still(machines, clock, name, 1)
    gap_of_all, forks = await stand_still(machines, clock, name, FORKS)
    assert gap_of_all < GAP_FACTOR * gap_of_one + SLOW_SECONDS / 4, "many forks cost the source more than one does"
    seen = [await look(machines, name), await look(machines, alone)]
    for batch in (forks[i : i + 4] for i in range(0, FORKS, 4)):
        seen += await asyncio.gather(*(look(machines, fork) for fork in batch))
        for fork in batch:
            await machines.delete(fork)  # not to have all of them awake at once
    for one in seen:
        assert one["state"] == [42, 1000, "from the source", True]
    for what in MUST_DIFFER:
        values = [str(one[what]) for one in seen]
        assert len(set(values)) == FORKS + 2, f"{what} repeats: {sorted(values)}"
