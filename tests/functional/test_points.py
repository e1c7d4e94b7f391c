"""Must show 5: back to before a mistake, memory and files, and forward again; with `history: each` to any of thirty instructions."""

from __future__ import annotations

import pytest

from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines

pytestmark = pytest.mark.gvisor


async def value(machines: Machines, name: str, code: str) -> str | None:
    ended = await machines.run(name, code)
    assert ended.end == "value", ended
    return ended.value


async def test_a_mistake_is_rolled_back_in_memory_and_on_disk_and_the_rollback_undone(machines: Machines) -> None:
    name = (await machines.create(NewMachine())).record.name
    await value(machines, name, "table = {'a': 1, 'b': 2}; open('table.txt', 'w').write(repr(table))")
    await machines.snapshot(name, "before the mistake")
    await value(machines, name, "import os; table.clear(); os.remove('table.txt'); open('oops.txt', 'w').write('!')")
    back = await machines.rollback(name, snapshot="before the mistake")
    assert await value(machines, name, "import os; table, open('table.txt').read(), os.path.exists('oops.txt')") == (
        "({'a': 1, 'b': 2}, \"{'a': 1, 'b': 2}\", False)"
    )
    await machines.rollback(name, snapshot=back.undo)
    assert await value(machines, name, "table, sorted(f for f in os.listdir() if f.endswith('.txt'))") == "({}, ['oops.txt'])"


@pytest.mark.slow
async def test_with_history_each_any_of_thirty_instructions_can_be_gone_back_to(machines: Machines) -> None:
    name = (await machines.create(NewMachine(history="each"))).record.name
    for i in range(30):
        await value(machines, name, f"x = {i}; open('x.txt', 'w').write('{i}'); None")
    for i in (29, 0, 14, 22):
        await machines.rollback(name, instruction=i)
        assert await value(machines, name, "x, open('x.txt').read()") == f"({i}, '{i}')"
