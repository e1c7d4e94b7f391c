"""Everything a Python process can hold goes on after a sleep, fifty times in a row, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from kit.length import TIMEOUT_FACTOR, length
from kit.survival import build, check_nothing_runs_while_it_sleeps, check_round, finish, live_through

pytestmark = pytest.mark.gvisor

ROUNDS = length(50, 500)


async def test_everything_goes_on_from_where_it_was_and_meanwhile_nothing_of_it_is_on_the_host(machines: Machines, data: Path) -> None:
    name = (await machines.create(NewMachine())).record.name
    await build(machines, name)
    await check_nothing_runs_while_it_sleeps(machines, name, data, with_cgroups=True)
    await check_round(machines, name, 0)
    await finish(machines, name, 1)


@pytest.mark.slow
@pytest.mark.timeout(600 * TIMEOUT_FACTOR)
async def test_fifty_rounds_with_growing_data_leave_nothing_behind(machines: Machines, data: Path) -> None:
    name = (await machines.create(NewMachine())).record.name
    await build(machines, name)
    await live_through(machines, name, data, ROUNDS)
    await finish(machines, name, ROUNDS)
