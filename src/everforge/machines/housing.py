"""Getting a machine into a sandbox and out of it, with nothing destroyed before its replacement is durable and recorded.

The order of the steps is the safety here. A crash between any two of them leaves a state that recovery knows (recover.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from everforge.engine.base import Ending, Engine, How, Limits, Sandbox
from everforge.store.base import AT_END, Manifest, PointReason, PointRecord, Snapshots
from everforge.wire.errors import DiskFull, EverforgeError, SandboxLost, SaveFailed, SnapshotDamaged, SnapshotNotFound, WakeFailed
from everforge.wire.events import Ended
from everforge.wire.ids import SnapshotId
from everforge.wire.messages import Hello

from . import origin
from .archive import Archive
from .doors import Doors
from .dossier import Dossier
from .errands import Errands
from .guestline import GuestLine
from .incarnation import Incarnation
from .lifecycle import Arrow
from .points import point_of
from .saver import Saver
from .settings import MachineSettings
from .templates import KnownImages, Templates
from .turn import TurnRun
from .undertaker import Undertaker
from .weir import Flow, Weir

log = logging.getLogger(__name__)
ENTROPY_BYTES = 32
GIVEN_UP = "it was to be discarded, and the disk was too full to record that first"
T = TypeVar("T")


class Housing:
    def __init__(
        self,
        dossier: Dossier,
        saver: Saver,
        engine: Engine,
        snapshots: Snapshots,
        images: KnownImages,
        templates: Templates,
        archive: Archive,
        undertaker: Undertaker,
        settings: MachineSettings,
        doors: Doors,
        weir: Weir,
    ) -> None:
        self.dossier = dossier
        self.doors = doors
        self._weir = weir
        self.incarnation: Incarnation | None = None
        self.effects: int | None = None  # the last instruction whose effects the memory holds
        self.waiting: TurnRun | None = None  # an instruction that waits for its client's program, and sleeps and wakes with the machine
        self.errands = Errands()  # to the clerks in its guest
        self.life = 0  # another number: its memory does not go on from what it was, but from some other state
        self.saver = saver
        self._engine = engine
        self._snapshots = snapshots
        self._images = images
        self._templates = templates
        self._archive = archive
        self._undertaker = undertaker
        self._settings = settings

    @property
    def guest_protocol(self) -> int:
        """What its guest understands; 0 for a machine that is not awake."""
        return self.incarnation.line.protocol if self.incarnation else 0

    # --- in ----------------------------------------------------------------------------------------------------------------------------

    async def bring_up(self, arrow: Arrow) -> None:
        """From the head snapshot to a running machine. On any failure the sandbox is destroyed and nothing of the user's has run."""
        record = self.dossier.record
        if record.head is None:
            raise SnapshotNotFound(f"machine {record.name} has no snapshot to start from")
        await self._undertaker.clear(record.id)  # it lives once, or not at all
        with self.hold(record.head):
            if record.head == self._templates.id(record.image, record.disk_mb):
                await self._bring_up_template(arrow, record.head)
            else:
                await self._bring_up(arrow, record.head)
        self._archive.consider(record.id)

    async def _bring_up_template(self, arrow: Arrow, template: SnapshotId) -> None:
        """It may still have to be made; and one that turns out to be damaged is made again, since nothing of a user's is in it."""
        await self._templates.ensure(await self._images.find(self.dossier.record.image), self.dossier.record.disk_mb)
        try:
            await self._bring_up(arrow, template)
        except (SnapshotDamaged, SnapshotNotFound) as e:
            self._templates.doubt(template)
            raise WakeFailed(f"the template was damaged, and is made again: {e.message}") from e

    async def _bring_up(self, arrow: Arrow, head: SnapshotId) -> None:
        record = self.dossier.record
        manifest, folder, point = await self._open(head)
        image = (await self._images.find(record.image)).image
        limits = Limits(memory_mb=record.memory_mb, cpus=record.cpus, processes=record.processes, disk_mb=record.disk_mb)
        checking = asyncio.create_task(self._snapshots.verify_large(manifest, folder))
        sandbox: Sandbox | None = None
        try:
            with self.dossier.steps.step("restore"):
                sandbox = await self._engine.restore(image, folder, limits, manifest.engine_build)
            epoch = max(record.epoch, manifest.epoch) + 1
            line = GuestLine(sandbox.link, Flow(self._weir, record.id))
            hello = await _unless(checking, line.attach(epoch, 0, self._settings.guest_answer_seconds))
            origin.check_hello(hello, manifest, self.waiting.instruction.number if self.waiting else None)
            await checking  # the hash is known before anything of the user's runs
            # Others start from a template or a fork's snapshot too: then the generators must differ.
            fresh = record.epoch == 0 or point.reason in ("template", "fork")
            await self.dossier.write(set={"sandbox": sandbox.id, "epoch": epoch}, step="claim")
            surroundings = await self.doors.surroundings(record)
            incarnation = Incarnation(sandbox, line, self.dossier, self._settings, self.errands, self.doors)
            self.incarnation = incarnation
            await self._expect(incarnation, hello)
            incarnation.begin()
            # Once, on top of the template: later the environment is what the user has made of it.
            env = dict(record.env) if manifest.machine is None else {}
            await incarnation.set_up(env | dict(surroundings.env), self.guest_limits(), surroundings.files)
            await incarnation.go(secrets.token_hex(ENTROPY_BYTES) if fresh else None)
            if hello.running is not None and self.waiting is None:
                await incarnation.let_go(hello.running)
            self.effects = manifest.instruction
            await self.dossier.write(arrow, set={"failed_wakes": 0, "error": None, "last_used_at": time.time()}, detail={"snapshot": head})
        except asyncio.CancelledError:
            # As a crash here would be: what is claimed is left as it is, for recovery or for a delete; the rest goes.
            checking.cancel()
            if self.incarnation is not None:
                await self.incarnation.close()
            else:
                await self._undo_bring_up(sandbox)
            raise
        except EverforgeError:
            await self._undo_bring_up(sandbox)
            await checking  # a damaged snapshot may fail in any way before its hash is known, and then damage is what must be said
            raise
        except BaseException:
            checking.cancel()
            await self._undo_bring_up(sandbox)
            raise
        finally:
            with contextlib.suppress(asyncio.CancelledError, EverforgeError):
                await checking

    async def _expect(self, incarnation: Incarnation, hello: Hello) -> None:
        """What the memory is in the middle of: what this machine waits for; or, in a fork or a state gone back to, what nobody waits for any more."""
        run = self.waiting
        if run is not None:
            next_seq = await self.dossier.store.outputs(self.dossier.record.id, run.instruction.number)
            run.move_in(incarnation, hello.calls, hello.running_ms / 1000, next_seq)
        elif hello.running is not None:
            incarnation.expect_stray(hello.running)

    async def _undo_bring_up(self, sandbox: Sandbox | None) -> None:
        incarnation, self.incarnation = self.incarnation, None
        if incarnation is not None:
            await incarnation.close()
        if sandbox is not None:
            sandbox.link.close()
            await self._undertaker.bury(self.dossier.record.id, sandbox)

    def hold(self, snapshot: SnapshotId) -> AbstractContextManager[None]:
        """What is about to be restored is not packed under our hands."""
        return self._snapshots.hold(snapshot)

    async def check(self, snapshot: SnapshotId) -> None:
        """Everything that can be known of a snapshot and its image without restoring it. Raises SnapshotNotFound, SnapshotDamaged, SnapshotForeign,
        ImageNotFound, ImageDamaged."""
        await self._images.find(self.dossier.record.image)
        manifest, folder, _ = await self._open(snapshot)
        await self._snapshots.verify_large(manifest, folder)

    async def points_there(self) -> Sequence[PointRecord]:
        """The points that can be offered: their snapshots are on the disk, whether sound or not."""
        points = await self.dossier.store.points(self.dossier.record.id)
        there = frozenset(await self._snapshots.present([p.snapshot for p in points]))
        return [p for p in points if p.snapshot in there]

    async def _open(self, snapshot: SnapshotId) -> tuple[Manifest, Path, PointRecord]:
        with self.dossier.steps.step("open snapshot"):
            point = point_of(await self.dossier.store.points(self.dossier.record.id), snapshot)
            manifest, folder = await self._snapshots.open(snapshot)
            await origin.check(manifest, point, self.dossier.record, self._engine)
            await self._snapshots.verify_small(manifest, folder)
        return manifest, folder, point

    def guest_limits(self) -> dict[str, int]:
        record = self.dossier.record
        return {
            "memory_mb": record.memory_mb,
            "processes": record.processes,
            "open_files": self._settings.open_files,
            "output_bytes_max": self._settings.output_bytes_max,
            "result_bytes_max": self._settings.result_bytes_max,
        }

    # --- a point, and life goes on -------------------------------------------------------------------------------------------------------

    async def save_point(self, reason: PointReason, name: str | None = None, spare: SnapshotId | None = None) -> PointRecord:
        """Stop, save, go on; then make it durable and record it. Raises SaveFailed, and the machine goes on. `spare` is not retired for it."""
        point, error, _ = await self._save_alive(reason, name, None, spare)
        if error is not None or point is None:
            raise error or SaveFailed("nothing was saved")
        return point

    async def save_with_end(self, ended: Ended) -> Ended:
        """The end of an instruction and a point that holds its effects, in one transaction. If the save fails, the end says so."""
        _, _, told = await self._save_alive("each", None, ended, None)
        return told or ended

    async def end_unsaved(self, ended: Ended, why: EverforgeError) -> Ended:
        """The end of an instruction that should have been durable; it says why it is not."""
        return await self._awake().commit_end(_not_durable(ended, why), set=self.dossier.use())

    async def _save_alive(
        self, reason: PointReason, name: str | None, ended: Ended | None, spare: SnapshotId | None
    ) -> tuple[PointRecord | None, SaveFailed | None, Ended | None]:
        incarnation = self._awake()
        try:
            await self.dossier.write(Arrow.SAVE_STARTED, patient=False)
        except DiskFull as e:
            return None, e, None if ended is None else await self.end_unsaved(ended, e)
        try:
            async with self.saver.saved(incarnation, self.effects) as (partial, manifest, position):
                await incarnation.go()
                point = await self.saver.finish(partial, manifest, reason, name, position if ended is None else AT_END)
        except SaveFailed as e:
            await incarnation.go()
            return None, e, await self._record_save(incarnation, None, ended, e, spare)
        async with self.saver.unrecorded(point):
            return point, None, await self._record_save(incarnation, point, ended, None, spare)

    async def _record_save(
        self, incarnation: Incarnation, point: PointRecord | None, ended: Ended | None, error: SaveFailed | None, spare: SnapshotId | None
    ) -> Ended | None:
        fields: dict[str, object] = {"error": error.message if error else None}
        drop: list[SnapshotId] = []
        if point is not None:
            drop = await self.saver.to_retire(point, spare)
            fields |= {"head": point.snapshot, "unsaved_from": self._unsaved_from()}
        points = [] if point is None else [point]
        write = {"arrow": Arrow.SAVE_ENDED, "set": fields, "add_points": points, "drop_points": drop, "durable": point is not None}
        if ended is None:
            await self.dossier.write(**write)  # pyright: ignore[reportArgumentType]
        else:
            fields |= self.dossier.use()
            ended = await incarnation.commit_end(ended if error is None else _not_durable(ended, error), **write)
        await self.saver.remove(drop)
        self._archive.consider(self.dossier.record.id)
        return ended

    # --- out -----------------------------------------------------------------------------------------------------------------------------

    async def hibernate(self, wanted: Callable[[], bool]) -> bool:
        """To sleep; False when somebody wanted the machine meanwhile and it stayed. Raises SaveFailed, and it stayed too."""
        incarnation = self._awake()
        await self.dossier.write(Arrow.SLEEP_STARTED, patient=False)
        try:
            async with self.saver.saved(incarnation, self.effects) as (partial, manifest, position):
                if wanted():
                    return await self._stay(incarnation, partial)
                point = await self.saver.finish(partial, manifest, "idle", None, position)
        except SaveFailed as e:
            await incarnation.go()
            await self.dossier.write(Arrow.SAVE_FAILED, set={"error": e.message}, detail={"error": e.message})
            raise
        async with self.saver.unrecorded(point):
            drop = await self.saver.to_retire(point, None)
            await self.dossier.write(
                Arrow.SLEEP_RECORDED,
                set={
                    "head": point.snapshot,
                    "sandbox": None,
                    "error": None,
                    "unsaved_from": self._unsaved_from(),
                    "last_used_at": self.dossier.used_at,
                },
                detail={"snapshot": point.snapshot},
                add_points=[point],
                drop_points=drop,
                durable=True,
            )
        await self.leave()  # only now: the replacement is durable and recorded
        await self.saver.remove(drop)
        self._archive.consider(self.dossier.record.id)
        return True

    async def _stay(self, incarnation: Incarnation, partial: Path) -> bool:
        await incarnation.go()
        await self._snapshots.abandon(partial)
        await self.dossier.write(Arrow.WANTED_AGAIN)
        return False

    async def give_up(self) -> None:
        """Destroy the sandbox before that is recorded: on a full disk it may be what takes the room. The keeper finds it lost, as the next
        server would if this one died now."""
        if (incarnation := self.incarnation) is not None:
            incarnation.lose(Ending(How.LOST, GIVEN_UP))
            with self.dossier.steps.step("destroy"):
                try:
                    await incarnation.sandbox.destroy()
                except EverforgeError as e:  # whoever finds it lost tries again
                    log.error("the sandbox of machine %s could not be destroyed, and is tried again: %s", self.dossier.record.name, e.message)

    async def leave(self) -> None:
        """Destroy the sandbox, if there is one."""
        incarnation, self.incarnation = self.incarnation, None
        if incarnation is not None:
            with self.dossier.steps.step("destroy"):
                await incarnation.close()
                await self._undertaker.bury(self.dossier.record.id, incarnation.sandbox)

    # --- parts ---------------------------------------------------------------------------------------------------------------------------

    def _awake(self) -> Incarnation:
        if self.incarnation is None:
            raise SandboxLost("the machine has no sandbox")
        return self.incarnation

    def _unsaved_from(self) -> int:
        return max(self.dossier.record.unsaved_from, 0 if self.effects is None else self.effects + 1)


async def _unless(checking: asyncio.Task[None], answer: Coroutine[Any, Any, T]) -> T:
    """The guest's answer; or what the check finds wrong, at once: memory that is damaged may never answer."""
    answering = asyncio.ensure_future(answer)
    answering.add_done_callback(lambda task: task.cancelled() or task.exception())  # nobody may be waiting
    try:
        await asyncio.wait([answering, checking], return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            await checking
        return await answering
    finally:
        answering.cancel()


def _not_durable(ended: Ended, error: EverforgeError) -> Ended:
    return replace(ended, note="; ".join(filter(None, [ended.note, f"not durable: {error.message}"])))
