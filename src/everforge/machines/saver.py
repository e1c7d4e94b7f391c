"""The snapshots of one machine: taken, made durable, and let go. When that happens, and what is recorded, is housing.py's business."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from everforge.engine.base import Engine
from everforge.store.base import Manifest, PointReason, PointRecord, Snapshots
from everforge.store.retention import Retention, to_drop
from everforge.wire.errors import EverforgeError, SandboxLost, SaveFailed
from everforge.wire.events import Position
from everforge.wire.ids import SnapshotId, new_snapshot_id

from .dossier import Dossier
from .incarnation import Incarnation
from .settings import MachineSettings

log = logging.getLogger(__name__)


class Saver:
    def __init__(
        self, dossier: Dossier, engine: Engine, snapshots: Snapshots, settings: MachineSettings, steady: Callable[[], float] = time.time
    ) -> None:
        self.loose: set[SnapshotId] = set()  # on the disk, and named by no record: not yet, or no longer
        self.partials: set[Path] = set()  # begun, and not known to be gone: a save that is cut off writes on until its sandbox ends
        self._dossier = dossier
        self._engine = engine
        self._snapshots = snapshots
        self._settings = settings
        self._steady = steady

    @asynccontextmanager
    async def saved(self, incarnation: Incarnation, effects: int | None) -> AsyncGenerator[tuple[Path, Manifest, Position]]:
        """A saved sandbox in a partial folder, its guest frozen. Whatever goes wrong, here or in the block, the folder goes.

        Unless the sandbox is lost, what goes wrong is a SaveFailed: the machine can go on.
        """
        partial = await self._snapshots.begin()
        self.partials.add(partial)
        try:
            await incarnation.freeze()
            position = await self._dossier.end_position()
            manifest = self._manifest(incarnation, effects)
            with self._dossier.steps.step("save"):
                await incarnation.sandbox.save(partial)
            yield partial, manifest, position
            self.partials.discard(partial)
        except (SaveFailed, SandboxLost):
            await self._abandon(partial)
            raise
        except EverforgeError as e:
            await self._abandon(partial)
            raise SaveFailed(f"the machine was not saved: {e.message}") from e
        except BaseException:
            await self._snapshots.abandon(partial)
            raise

    async def _abandon(self, partial: Path) -> None:
        await self._snapshots.abandon(partial)
        self.partials.discard(partial)

    @asynccontextmanager
    async def unrecorded(self, point: PointRecord) -> AsyncGenerator[None]:
        """A finished snapshot that no record names yet: it goes if recording it fails.

        When we are cancelled the write may still have been done: then it stays, and the next start sweeps it away if nobody names it.
        """
        try:
            yield
        except Exception:
            await self.remove([point.snapshot])
            raise
        self.loose.discard(point.snapshot)

    def _manifest(self, incarnation: Incarnation, effects: int | None) -> Manifest:
        """Of what is about to be saved; the guest is frozen, so the numbers stand still."""
        record = self._dossier.record
        return Manifest(
            snapshot=new_snapshot_id(),
            machine=record.id,
            engine=self._engine.name,
            engine_build=incarnation.sandbox.build,
            image=record.image,
            memory_mb=record.memory_mb,
            disk_mb=record.disk_mb,
            epoch=record.epoch,
            sent=incarnation.line.received,
            received=incarnation.line.sent,
            instruction=effects,
            created_at=time.time(),
        )

    async def finish(self, partial: Path, manifest: Manifest, reason: PointReason, name: str | None, position: Position) -> PointRecord:
        self.loose.add(manifest.snapshot)
        with self._dossier.steps.step("finish snapshot"):
            manifest = await self._snapshots.finish(partial, manifest)
        record = self._dossier.record
        return PointRecord(
            snapshot=manifest.snapshot,
            machine=record.id,
            position=position,
            instruction=manifest.instruction,
            created_at=manifest.created_at,
            reason=reason,
            name=name,
            size_bytes=manifest.size_bytes,
        )

    async def to_retire(self, newest: PointRecord, spare: SnapshotId | None) -> list[SnapshotId]:
        """Which points go when this one comes."""
        points = [*await self._dossier.store.points(self._dossier.record.id), newest]
        if sum(p.size_bytes for p in points) > self._settings.points_bytes_max:  # as whole images; those that are packed take less
            costs = await self._snapshots.costs([p.snapshot for p in points])
            points = [replace(p, size_bytes=costs.get(p.snapshot, p.size_bytes)) for p in points]
        keep = Retention(count=self._settings.points_max, age_seconds=self._settings.points_age_seconds, bytes=self._settings.points_bytes_max)
        now = min(time.time(), self._steady())  # no point has grown old because somebody set the clock
        return [p.snapshot for p in to_drop(points, keep, head=newest.snapshot, now=now) if p.snapshot != spare]

    async def drop(self, snapshot: SnapshotId) -> None:
        """Let go of one point that is not the head."""
        await self._dossier.write(drop_points=[snapshot], durable=True, step="drop point")
        await self.remove([snapshot])

    async def remove(self, dropped: list[SnapshotId]) -> None:
        """The folders of points that no record names any more, unless another machine's does.

        What cannot be removed costs room and nothing else: it is tried again with the next ones, and swept away by the next server.
        """
        self.loose.update(dropped)
        for snapshot in sorted(self.loose):
            try:
                if not await self._dossier.store.snapshot_in_use(snapshot):
                    await self._snapshots.delete(snapshot)
            except EverforgeError as e:
                log.warning("snapshot %s, which is not needed any more, could not be removed yet: %s", snapshot, e.message)
            else:
                self.loose.discard(snapshot)
