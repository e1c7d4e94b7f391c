"""Is a snapshot for this server, and what the record says of it? Asked before anything of it is restored, and again of the guest that wakes in it."""

from __future__ import annotations

from everforge.engine.base import Engine
from everforge.store.base import MachineRecord, Manifest, PointRecord
from everforge.wire.errors import SnapshotDamaged, SnapshotForeign
from everforge.wire.messages import PROTOCOL, PROTOCOL_OLDEST, Hello

from .templates import WARM_MEMORY_MB


async def check(manifest: Manifest, point: PointRecord, record: MachineRecord, engine: Engine) -> None:
    """Raises SnapshotForeign, SnapshotDamaged."""
    for what, there, here in (
        ("engine", manifest.engine, engine.name),
        ("image", manifest.image, record.image),
        ("a disk in MB of", manifest.disk_mb, record.disk_mb),
        ("memory in MB of", manifest.memory_mb, WARM_MEMORY_MB if manifest.machine is None else record.memory_mb),
    ):
        if there != here:
            raise SnapshotForeign(
                f"snapshot {manifest.snapshot} was made with {what} {str(there)[:40]}, but here that is {str(here)[:40]}; nothing was run"
            )
    if not await engine.knows(manifest.engine_build):
        raise SnapshotForeign(
            f"snapshot {manifest.snapshot} was made with engine build {manifest.engine_build[:40]}, which is not kept here; nothing was run"
        )
    if manifest.instruction != point.instruction or not _may_be_of(manifest, point, record):
        raise SnapshotDamaged(
            f"snapshot {manifest.snapshot} says that it is of machine {manifest.machine} after instruction {manifest.instruction}, but it is kept"
            f" as one of machine {record.id} after instruction {point.instruction}"
        )


def _may_be_of(manifest: Manifest, point: PointRecord, record: MachineRecord) -> bool:
    """Whose memory is in it? A fork begins with that of its source, or of its source's source."""
    if point.reason == "template":
        return manifest.machine is None
    return manifest.machine == record.id or (point.reason == "fork" and record.source is not None)


def check_hello(hello: Hello, manifest: Manifest, waiting: int | None) -> None:
    """`waiting`: the instruction that the machine fell asleep with."""
    if not PROTOCOL_OLDEST <= hello.protocol <= PROTOCOL:
        here = f"{PROTOCOL_OLDEST} to {PROTOCOL}"
        raise SnapshotForeign(f"the guest in snapshot {manifest.snapshot} speaks protocol {hello.protocol}, this server {here}")
    said = (hello.epoch, hello.sent, hello.received, hello.frozen)
    if said != (manifest.epoch, manifest.sent, manifest.received, True):
        raise SnapshotDamaged(f"the guest in snapshot {manifest.snapshot} says (epoch, sent, received, frozen) {said}, the manifest otherwise")
    if waiting is not None and hello.running != waiting:
        raise SnapshotDamaged(f"instruction {waiting} waits for an answer, but the guest in snapshot {manifest.snapshot} is at {hello.running}")
