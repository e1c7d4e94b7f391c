"""Templates: a freshly started image, warmed up and saved. Every new machine is restored from one, and has it as its point 0.

There is one per engine build, image and disk size, since a restore keeps the size that was saved. Its snapshot id is derived from these, so no index
is needed: a template exists when the snapshot with that id does.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from everforge.engine.base import Engine, Image, Limits
from everforge.store.base import Manifest, Snapshots
from everforge.wire.errors import ImageDamaged, SnapshotDamaged, SnapshotNotFound, StartFailed
from everforge.wire.ids import ALPHABET, SnapshotId
from everforge.wire.messages import PROTOCOL, CannotFreeze, End, Freeze, Frozen, Run

from .guestline import GuestLine

WARM_SECONDS = 180.0  # imports of pandas and matplotlib on a slow, cold disk
BOOT_SECONDS = 60.0
WARM_MEMORY_MB = 2048  # a template is made once; it should not fail for want of memory


class ImageEntry(Protocol):
    @property
    def image(self) -> Image: ...

    @property
    def warm(self) -> Sequence[str]:
        """Modules to import before the template is saved."""
        ...

    @property
    def env(self) -> Mapping[str, str]: ...


class Images(Protocol):
    def find(self, name_or_digest: str) -> ImageEntry:
        """May read the disk: called in a thread. Raises ImageNotFound, ImageDamaged."""
        ...

    async def scrub(self, digest: str) -> None:
        """Read every byte of it, which takes long, and leave the processors to others. Raises ImageDamaged, and so does `find` from then on."""
        ...


class KnownImages:
    """Images by digest do not change: each is looked up once. What a name stands for may change, and is looked up every time."""

    def __init__(self, images: Images) -> None:
        self._images = images
        self._known: dict[str, ImageEntry] = {}

    async def find(self, name_or_digest: str) -> ImageEntry:
        entry = self._known.get(name_or_digest)
        if entry is None:
            entry = await asyncio.to_thread(self._images.find, name_or_digest)
            self._known[entry.image.digest] = entry
        return entry

    async def scrub(self, digest: str) -> None:
        """Raises ImageDamaged: then it is not known any more, and looked up (and refused) at every wake, until it is mended."""
        try:
            await self._images.scrub(digest)
        except ImageDamaged:
            self._known.pop(digest, None)
            raise


class Templates:
    def __init__(self, engine: Engine, snapshots: Snapshots) -> None:
        self._engine = engine
        self._snapshots = snapshots
        self._making: dict[SnapshotId, asyncio.Lock] = {}
        self._verified: set[SnapshotId] = set()

    def id(self, image: str, disk_mb: int) -> SnapshotId:
        digest = hashlib.sha256(f"{self._engine.name} {self._engine.build} {image} {disk_mb} {PROTOCOL}".encode()).digest()
        return SnapshotId("p" + "".join(ALPHABET[b % len(ALPHABET)] for b in digest[:15]))

    def expect(self, image: str, disk_mb: int) -> None:
        """It will be asked for: not to be swept away, although no machine refers to it."""
        self._making.setdefault(self.id(image, disk_mb), asyncio.Lock())

    @property
    def in_use(self) -> frozenset[SnapshotId]:
        return frozenset(self._making)

    def doubt(self, template: SnapshotId) -> None:
        """It was found to be damaged: looked at whole the next time it is asked for."""
        self._verified.discard(template)

    async def ensure(self, entry: ImageEntry, disk_mb: int) -> Manifest:
        """The template, made now if there is none or if it is damaged."""
        id = self.id(entry.image.digest, disk_mb)
        async with self._making.setdefault(id, asyncio.Lock()):
            try:
                manifest, folder = await self._snapshots.open(id)
                if id not in self._verified:
                    await self._snapshots.verify_small(manifest, folder)
                    await self._snapshots.verify_large(manifest, folder)
            except SnapshotNotFound:
                manifest = await self._make(id, entry, disk_mb)
            except SnapshotDamaged:
                await self._snapshots.delete(id)  # nothing of a user's is in it: it can be made again
                manifest = await self._make(id, entry, disk_mb)
            self._verified.add(id)
            return manifest

    async def _make(self, id: SnapshotId, entry: ImageEntry, disk_mb: int) -> Manifest:
        partial = await self._snapshots.begin()
        try:
            sandbox = await self._engine.start(entry.image, Limits(memory_mb=WARM_MEMORY_MB, disk_mb=disk_mb))
        except BaseException:
            await self._snapshots.abandon(partial)
            raise
        line = GuestLine(sandbox.link)
        try:
            await line.attach(epoch=1, have=0, deadline_seconds=BOOT_SECONDS)
            async with asyncio.timeout(WARM_SECONDS):
                await self._warm(line, entry.warm)
                await line.send(Freeze(token=1))
                await _await(line, Frozen)
            await sandbox.save(partial)
            manifest = Manifest(
                snapshot=id,
                machine=None,
                engine=self._engine.name,
                engine_build=sandbox.build,
                image=entry.image.digest,
                memory_mb=WARM_MEMORY_MB,
                disk_mb=disk_mb,
                epoch=1,
                sent=line.received,
                received=line.sent,
                instruction=None,
                created_at=time.time(),
            )
            return await self._snapshots.finish(partial, manifest)
        except TimeoutError:
            raise StartFailed(f"the image {entry.image.digest[:12]} did not start and warm up within {WARM_SECONDS:g} s") from None
        finally:
            line.close()
            await sandbox.destroy()
            await self._snapshots.abandon(partial)

    @staticmethod
    async def _warm(line: GuestLine, modules: Sequence[str]) -> None:
        await line.send(Run(instruction=0, code="\n".join(["1", *(f"__import__({m!r})" for m in modules), "None"])))
        end = await _await(line, End)
        if isinstance(end, End) and end.end != "value":
            raise StartFailed(f"warming up the image failed: {end.error_name}: {end.error_message}")


async def _await(line: GuestLine, kind: type[End] | type[Frozen]) -> End | Frozen:
    while True:
        for heard in await line.receive():
            if isinstance(heard.message, kind):
                return heard.message
            if isinstance(heard.message, CannotFreeze):
                raise StartFailed(f"the image cannot be made a template of: {heard.message.why[:500]}")
