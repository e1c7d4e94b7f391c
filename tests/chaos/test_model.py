"""On the real engine: a shorter walk of random operations against the same model as on the fake one."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from everforge.engine.gvisor.engine import Gvisor
from everforge.machines.service import Machines
from everforge.server.bootstrap import open_machines
from everforge.store.base import MachineQuery
from kit.length import LONG, TIMEOUT_FACTOR, length
from kit.model import MachinesModel
from kit.real import LINGER_SECONDS, TESTED, give_template, until_gone


class RealMachines(MachinesModel):
    """Killing the server in this process means to let go of everything at once; the warden and its sandboxes do not see the difference."""

    async def open(self) -> None:
        self.data = Path(tempfile.mkdtemp(prefix="ef-"))
        give_template(self.data)
        await self._start()

    async def _start(self) -> None:
        self._machines, self._folder = await open_machines(self.data, TESTED, warden_linger_seconds=LINGER_SECONDS)

    async def _let_go(self) -> None:
        await self._machines.forge.stop(hibernate=False)
        self._folder.unlock()

    async def crash(self) -> None:
        await self._let_go()
        await self._start()

    async def lose(self) -> None:
        assert isinstance(self._machines.forge.engine, Gvisor)
        warden = self._machines.forge.engine.warden_pid
        await self._let_go()
        os.kill(warden, signal.SIGKILL)
        await asyncio.sleep(0.2)
        await self._start()

    async def shut(self) -> None:
        if hasattr(self, "_machines"):
            for view in await self._machines.list(MachineQuery()):
                await self._machines.delete(view.record.name)
            await self._let_go()
            await until_gone(self.data)
            shutil.rmtree(self.data)

    @property
    def machines(self) -> Machines:
        return self._machines


TestRealMachines = pytest.mark.gvisor(pytest.mark.slow(pytest.mark.timeout(600 * TIMEOUT_FACTOR)(RealMachines.TestCase)))
TestRealMachines.settings = settings(
    max_examples=length(2, 30),
    stateful_step_count=length(25, 50),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    phases=[Phase.generate],
    derandomize=not LONG,  # every change passes the same ones; the long tests look for new ones
)
