"""Sandboxes that a machine has left, until they are no more: a machine must not go on in a new one while it still runs in the old.

Destroying one hardly ever fails. When it does, as while no warden can be started, it is tried again: behind everything, and before its machine is
brought up or deleted. What a server leaves behind in the end belongs to no record, and goes when the next one starts.
"""

from __future__ import annotations

import asyncio
import logging

from everforge.engine.base import Sandbox
from everforge.wire.errors import EverforgeError, WakeFailed
from everforge.wire.ids import MachineId

log = logging.getLogger(__name__)
PAUSE_SECONDS = 1.0  # doubled after each try
PAUSE_SECONDS_MAX = 60.0


class Undertaker:
    def __init__(self) -> None:
        self._left: dict[MachineId, list[Sandbox]] = {}
        self._task: asyncio.Task[None] | None = None

    async def bury(self, machine: MachineId, sandbox: Sandbox) -> None:
        """Does not fail: what is left to do is done later."""
        try:
            await sandbox.destroy()
        except EverforgeError as e:
            log.error("a sandbox that machine %s has left could not be destroyed, and is tried again: %s", machine, e.message)
            self._left.setdefault(machine, []).append(sandbox)
            if self._task is None or self._task.done():
                self._task = asyncio.get_running_loop().create_task(self._work(), name="undertaker")

    async def clear(self, machine: MachineId) -> None:
        """Nothing is left of earlier sandboxes of this machine when it returns. Raises WakeFailed."""
        while sandboxes := self._left.get(machine):
            sandbox = sandboxes[-1]
            try:
                await sandbox.destroy()
            except EverforgeError as e:
                raise WakeFailed(f"what is left of its last sandbox could not be destroyed: {e.message}") from e
            if sandbox in sandboxes:  # nobody else was quicker
                sandboxes.remove(sandbox)
            if not sandboxes:
                self._left.pop(machine, None)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        pause_seconds = PAUSE_SECONDS
        while self._left:
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, PAUSE_SECONDS_MAX)
            for machine in list(self._left):
                try:
                    await self.clear(machine)
                except WakeFailed as e:
                    log.warning("machine %s: %s", machine, e.message)
                except Exception:  # whatever it is: nobody else would go on with the others
                    log.exception("what is left of a sandbox of machine %s could not be destroyed, and is tried again", machine)
