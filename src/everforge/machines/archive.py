"""Packs the points that machines only keep to go back to, one at a time for the whole server, behind everything else.

A machine's head stays whole, so that it wakes at full speed. What is not packed now, because it is in use or the server stops, is found again after
the machine's next save.
"""

from __future__ import annotations

import asyncio
import logging

from everforge.store.base import PointRecord, Snapshots, Store
from everforge.wire.ids import MachineId

from .templates import Templates

log = logging.getLogger(__name__)


class Archive:
    def __init__(self, store: Store, snapshots: Snapshots, templates: Templates) -> None:
        self._store = store
        self._snapshots = snapshots
        self._templates = templates
        self._waiting: dict[MachineId, None] = {}  # in order; each machine once
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def consider(self, machine: MachineId) -> None:
        """It has a new head: what was one before may be packed."""
        if self._closed:
            return
        self._waiting[machine] = None
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def close(self) -> None:
        self._closed = True
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

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
        points: list[PointRecord] = [p for p in await self._store.points(machine) if p.snapshot != record.head and p.reason != "template"]
        base = self._templates.id(record.image, record.disk_mb)
        for snapshot in await self._snapshots.unpacked([p.snapshot for p in points]):
            # Forks start from points of others, too.
            if not await self._store.is_head(snapshot):
                await self._snapshots.pack(snapshot, base)
