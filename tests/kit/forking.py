"""Twenty forks of a live machine, compared."""

from __future__ import annotations

import asyncio
import json
import time

from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from everforge.wire.events import Output

FORKS = 20
STATE = """
import random, uuid, tempfile, socket, secrets, threading, time, json, ssl, os
import numpy as np
random.seed(42); np.random.seed(42); random.random(); tempfile.gettempdir(); next(tempfile._get_candidate_names()); ssl.RAND_bytes(8)
data = {"answer": 42, "list": list(range(1000))}
open("note.txt", "w").write("from the source")
ticks = []
def tick():
    while True:
        ticks.append(time.monotonic()); time.sleep(0.005)
threading.Thread(target=tick, daemon=True).start()
"""
LOOK = """
print(json.dumps({
    "state": [data["answer"], len(data["list"]), open("note.txt").read(), len(ticks) > 0],
    "random": random.random(), "numpy": float(np.random.random()), "uuid1": str(uuid.uuid1()), "uuid4": str(uuid.uuid4()),
    "secret": secrets.token_hex(8), "openssl": ssl.RAND_bytes(8).hex(), "temp": next(tempfile._get_candidate_names()), "host": socket.gethostname(),
}))
"""
MUST_DIFFER = ("random", "numpy", "uuid1", "uuid4", "secret", "openssl", "temp", "host")


async def look(machines: Machines, name: str) -> dict[str, object]:
    number, _ = await machines.exec(name, LOOK, timeout_seconds=60)
    ended = await machines.result(name, number)
    assert ended.end == "value", ended
    lines = [line async for e in machines.read(name) if isinstance(e, Output) and e.instruction == number for line in e.lines]
    return json.loads(lines[-1])


async def fork_and_compare(machines: Machines) -> None:
    name = (await machines.create(NewMachine())).record.name
    assert (await machines.run(name, STATE, timeout_seconds=60)).end == "value"
    began = time.monotonic()
    forks = [view.record.name for view in await machines.fork(name, count=FORKS)]
    took = time.monotonic() - began
    gap = await machines.run(name, "time.sleep(0.05); max(b - a for a, b in zip(ticks, ticks[1:]))")
    assert gap.value is not None
    assert float(gap.value) <= took, "the source stood still for longer than the whole call"
    assert len(await machines.points(name)) == 2, "more than one save for all the forks"
    seen = [await look(machines, name)]
    for batch in (forks[i : i + 4] for i in range(0, FORKS, 4)):
        seen += await asyncio.gather(*(look(machines, fork) for fork in batch))
        for fork in batch:
            await machines.hibernate(fork)
    for one in seen:
        assert one["state"] == [42, 1000, "from the source", True]
    for what in MUST_DIFFER:
        values = [str(one[what]) for one in seen]
        assert len(set(values)) == FORKS + 1, f"{what} repeats: {sorted(values)}"
