"""Back to before a mistake, memory and files, and forward again; with `history: each` to any of thirty instructions."""

from __future__ import annotations

import random

import pytest

from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines

pytestmark = pytest.mark.gvisor

INSTRUCTIONS = 30


async def value(machines: Machines, name: str, code: str) -> str | None:
    ended = await machines.run(name, code)
    assert ended.end == "value", ended
    return ended.value


LOOK = "import os; table, {f: open(f).read() for f in sorted(os.listdir()) if f.endswith('.txt')}"


async def test_a_mistake_is_rolled_back_in_memory_and_on_disk_and_the_rollback_undone(machines: Machines) -> None:
    name = (await machines.create(NewMachine())).record.name
    await value(machines, name, "table = {'a': 1, 'b': 2}; open('table.txt', 'w').write(repr(table))")
    before = "({'a': 1, 'b': 2}, {'table.txt': \"{'a': 1, 'b': 2}\"})"
    assert await value(machines, name, LOOK) == before
    await machines.snapshot(name, "before the mistake")
    await value(machines, name, "table.clear(); os.remove('table.txt'); open('oops.txt', 'w').write('!')")
    after = "({}, {'oops.txt': '!'})"
    assert await value(machines, name, LOOK) == after
    back = await machines.rollback(name, snapshot="before the mistake")
    assert await value(machines, name, LOOK) == before
    assert back.undo is not None
    undone = await machines.rollback(name, snapshot=back.undo)
    assert await value(machines, name, LOOK) == after
    await machines.rollback(name, snapshot=undone.undo)  # an undo can be undone, too
    assert await value(machines, name, LOOK) == before


@pytest.mark.slow
async def test_with_history_each_any_of_thirty_instructions_can_be_gone_back_to(machines: Machines) -> None:
    name = (await machines.create(NewMachine(history="each"))).record.name
    await value(machines, name, "import os; table = [0]; open('0.txt', 'w').write('0'); None")
    for i in range(1, INSTRUCTIONS):
        await value(machines, name, f"table.append({i}); open('{i}.txt', 'w').write('{i}'); os.remove('{i - 1}.txt')")
    await machines.update(name, history="idle")  # looking at a point must not make another
    order = random.Random(5).sample(range(INSTRUCTIONS), INSTRUCTIONS)
    undo = None
    for instruction in order:
        done = await machines.rollback(name, instruction=instruction)
        assert done.point.instruction == instruction
        assert await value(machines, name, LOOK) == after(instruction)
        undo = done.undo
    await machines.rollback(name, snapshot=undo)
    assert await value(machines, name, LOOK) == after(order[-2])


def after(instruction: int) -> str:
    return f"({list(range(instruction + 1))}, {{'{instruction}.txt': '{instruction}'}})"
