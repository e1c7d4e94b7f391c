"""Packs the points that machines only keep to go back to, one at a time for the whole server, behind everything else.

A machine's head stays whole, so that it wakes at full speed. What is not packed now, because it is in use or the server stops, is found again after
the machine's next save, or by the next server when it looks around.
"""

from __future__ import annotations

import asyncio
import logging

from everforge.store.base import MachineQuery, Snapshots, Store
from everforge.wire.ids import MachineId, SnapshotId

from .steps import Steps
from .templates import Templates

log = logging.getLogger(__name__)
PAGE = 100
LOOK_PAUSE_SECONDS = 0.2  # between machines: ten thousand take half an hour, and nobody waits for it


class Archive:
    def __init__(self, store: Store, snapshots: Snapshots, templates: Templates, steps: Steps) -> None:
        self._store = store
        self._snapshots = snapshots
        self._templates = templates
        self._steps = steps
        self._waiting: dict[MachineId, None] = {}  # in order; each machine once
        self._working: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._closed = False

    def consider(self, machine: MachineId) -> None:
        """It has a new head: what was one before may be packed."""
        if self._closed:
            return
        self._waiting[machine] = None
        if self._working is None or self._working.done():
            self._working = asyncio.get_running_loop().create_task(self._work(), name="archive")

    def look_around(self, after_seconds: float) -> None:
        """For what earlier servers left whole, in machines that nobody may ever wake again."""
        self._looking = asyncio.get_running_loop().create_task(self._look_around(after_seconds), name="archive")

    async def close(self) -> None:
        self._closed = True
        self._waiting.clear()
        for task in (self._looking, self._working):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])

    async def _look_around(self, after_seconds: float) -> None:
        await asyncio.sleep(after_seconds)
        query = MachineQuery(limit=PAGE)
        try:
            while page := await self._store.machines(query):
                for record in page:
                    await asyncio.sleep(LOOK_PAUSE_SECONDS)
                    while self._working is not None and not self._working.done():
                        await asyncio.wait([self._working])  # what was saved just now goes first
                    self.consider(record.id)
                query = MachineQuery(limit=PAGE, before=(page[-1].created_at, page[-1].id))
        except Exception:
            log.exception("points that earlier servers left whole are packed after their machine's next save")

    async def _work(self) -> None:
        while self._waiting:
            machine = next(iter(self._waiting))
            del self._waiting[machine]
            try:
                await self._pack_points(machine)
            except Exception:
                log.exception("the points of machine %s are not packed yet", machine)

    async def _pack_points(self, machine: MachineId) -> None:
        record = await self._store.machine(machine)
        if record is None or record.deleted_at is not None:
            return
        points = [p.snapshot for p in await self._store.points(machine) if p.snapshot != record.head and p.reason != "template"]
        base = self._templates.id(record.image, record.disk_mb)
        for snapshot in await self._snapshots.unpacked(points):
            if await self._is_only_kept(snapshot):
                with self._steps.step("pack"):
                    await self._snapshots.pack(snapshot, base)

    async def _is_only_kept(self, snapshot: SnapshotId) -> bool:
        """Forks start from points of others, too; and what was dropped meanwhile is about to be deleted, which should not wait for us."""
        return await self._store.snapshot_in_use(snapshot) and not await self._store.is_head(snapshot)
