"""Must show 4: twenty forks of a live machine. It stands still for one save, they have all of the state, and nothing random comes twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from kit.forking import fork_and_compare
from kit.real import real_machines, until_gone
from kit.stepclock import StepClock

pytestmark = pytest.mark.gvisor


@pytest.mark.slow
async def test_twenty_forks_of_a_live_machine_share_its_state_and_none_of_its_randomness(data: Path) -> None:
    clock = StepClock()
    async with real_machines(data, steps=clock.steps) as machines:
        await fork_and_compare(machines, clock)
    await until_gone(data)


async def test_a_wake_keeps_its_generators_and_new_machines_have_their_own(machines: Machines) -> None:
    name = (await machines.create(NewMachine())).record.name
    await machines.run(name, "import random, numpy as np; random.seed(1); np.random.seed(1)")
    await machines.hibernate(name)
    woken = (await machines.run(name, "random.random(), float(np.random.random())")).value
    other = (await machines.create(NewMachine())).record.name
    fresh = (await machines.run(other, "import random, numpy as np; random.random(), float(np.random.random())")).value
    again = (await machines.run(other, "random.seed(1); np.random.seed(1); random.random(), float(np.random.random())")).value
    assert woken == again != fresh
