"""Random sequences of operations, crashes and faults against a model of the lifecycle, thousands of steps on the fake engine; then by several clients at once."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from everforge.machines.service import Machines
from kit.crowd import Crowd
from kit.house import House
from kit.length import TIMEOUT_FACTOR, length
from kit.model import MachinesModel, SaveFailed, rule


class FakeMachines(MachinesModel):
    house: House

    async def open(self) -> None:
        self.house = House()
        await self.house.start()

    async def crash(self) -> None:
        await self.house.restart()

    async def lose(self) -> None:
        await self.house.kill()
        self.house.host.lose_everything()
        await self.house.start()

    async def shut(self) -> None:
        if hasattr(self, "house"):
            await self.house.check_nothing_leaked()
            await self.house.close()

    @property
    def machines(self) -> Machines:
        return self.house.machines

    @rule(name=MachinesModel.names)
    def fail_to_save(self, name: str) -> None:
        """A save that fails leaves the machine awake, and nothing changes."""
        self.do(self.machines.wake(name))
        self.house.host.failing_saves = 1
        try:
            self.do(self.machines.hibernate(name))
            raise AssertionError("the save was told to fail")
        except SaveFailed:
            assert self.do(self.machines.get(name)).state == "ready"

    @rule(name=MachinesModel.names)
    def fail_to_wake_twice(self, name: str) -> None:
        self.do(self.machines.hibernate(name))
        self.models[name].save()
        self.house.host.failing_restores = 2
        self.look(name)

    @rule(name=MachinesModel.names)
    def time_out(self, name: str) -> None:
        assert self.do(self.machines.run(name, "hang()", timeout_seconds=0.002)).end == "timed_out"


SLOW_IS_FINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
TestFakeMachines = pytest.mark.timeout(300 * TIMEOUT_FACTOR)(FakeMachines.TestCase)
TestFakeMachines.settings = settings(SLOW_IS_FINE, max_examples=length(60, 400), stateful_step_count=length(50, 150))
TestCrowd = pytest.mark.timeout(300 * TIMEOUT_FACTOR)(Crowd.TestCase)
TestCrowd.settings = settings(
    SLOW_IS_FINE, max_examples=length(40, 500), stateful_step_count=length(50, 100)
)  # each step is what two to four clients do
