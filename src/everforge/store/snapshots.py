"""Snapshots as folders on a local disk, `ROOT/<id>/`, each with a manifest.

What is not finished, or half deleted, has another name: a crash leaves nothing that looks whole and is not. The large files of a snapshot that is
only kept to go back to lie in its machine's pack instead (packs/); it is unpacked into a working copy when it is opened.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import secrets
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar
from weakref import WeakValueDictionary

from everforge.wire.errors import EverforgeError, SnapshotDamaged, SnapshotNotFound
from everforge.wire.ids import SNAPSHOT_ID, SnapshotId

from . import manifests
from .base import Manifest
from .checks import check_hash, check_sizes, damaged, sizes_in
from .disk import Disk, not_saved
from .packs.packed import PackedSnapshots
from .packs.packer import Packer, PackerProcess
from .packs.packing import Job, large_files
from .threads import all_of, to_its_end

log = logging.getLogger(__name__)
T = TypeVar("T")

PARTIAL = ".partial-"
GONE = ".gone-"  # being deleted
SMALL_BYTES = 4 * 1024 * 1024  # hashed in about 4 ms; larger files are hashed beside the restore
PACKED_BYTES = 1024 * 1024  # files from this size on are packed; an index for less is not worth it
COLLECT_PAUSE_SECONDS = 0.2
THREADS = 4  # at once, of each kind: more would only make the disk seek


class SnapshotFolder:
    def __init__(
        self,
        root: Path,
        *,
        disk: Disk | None = None,
        small_bytes: int = SMALL_BYTES,
        packed_bytes: int = PACKED_BYTES,
        packer: Packer | None = None,
    ) -> None:
        self.root = root
        self._disk = disk or Disk()
        self._small_bytes = small_bytes
        self._packed_bytes = packed_bytes
        self._packer = packer or PackerProcess()
        self._packed = PackedSnapshots(root, self._disk, PARTIAL)
        self._locks: WeakValueDictionary[SnapshotId, asyncio.Lock] = WeakValueDictionary()  # opened, packed or deleted, one at a time
        self._held: Counter[SnapshotId] = Counter()
        self._packing: dict[SnapshotId, asyncio.Future[bool]] = {}
        self._to_collect: set[str] = set()  # machines in whose packs there are pages that nobody needs
        self._collecting: asyncio.Task[None] | None = None
        # A wake must not stand behind four machines that are just being saved: what takes long has threads of its own.
        self._quick = ThreadPoolExecutor(THREADS, "snapshots")
        self._bulk = ThreadPoolExecutor(THREADS, "snapshots-bulk")

    async def begin(self) -> Path:
        beginning = asyncio.ensure_future(self._run(self._begin))
        try:
            return await asyncio.shield(beginning)
        except asyncio.CancelledError:
            # The folder is being made all the same, and nobody would know its name.
            await asyncio.wait([beginning])
            if beginning.exception() is None:
                await self.abandon(beginning.result())
            raise

    async def finish(self, partial: Path, manifest: Manifest) -> Manifest:
        """After an error the partial folder is gone, and nothing else has changed. When cancelled it first comes to its end, one or the other."""
        self._check_partial(partial)
        return await to_its_end(self._finish(partial, manifest))

    async def abandon(self, partial: Path) -> None:
        """Twice is fine."""
        self._check_partial(partial)
        await self._run_long(self._remove, partial)

    async def open(self, id: SnapshotId) -> tuple[Manifest, Path]:
        return await to_its_end(self._open(id))

    async def _open(self, id: SnapshotId) -> tuple[Manifest, Path]:
        async with self._lock(id):
            manifest, folder, packed = await self._run(self._open_whole, id)
            if packed:
                folder = await self._run_long(self._packed.working_copy, manifest)
                await self._run(check_sizes, manifest, folder, self._disk)
            return manifest, folder

    async def verify_small(self, manifest: Manifest, folder: Path) -> None:
        await self._verify(manifest, folder, self._quick, lambda size: size <= self._small_bytes)

    async def verify_large(self, manifest: Manifest, folder: Path) -> None:
        await self._verify(manifest, folder, self._bulk, lambda size: size > self._small_bytes)

    @contextmanager
    def hold(self, id: SnapshotId) -> Generator[None]:
        self._held[id] += 1
        self._stop_packing(id)
        try:
            yield
        finally:
            self._held[id] -= 1
            if not self._held[id]:
                del self._held[id]

    async def present(self, ids: Sequence[SnapshotId]) -> Sequence[SnapshotId]:
        return await self._run(lambda: [id for id in ids if os.path.isfile(self._folder(id) / manifests.NAME)])  # noqa: PTH113 - a Path may raise

    async def unpacked(self, ids: Sequence[SnapshotId]) -> Sequence[SnapshotId]:
        return await self._run(lambda: [id for id in ids if self._is_unpacked(id)])

    async def costs(self, ids: Sequence[SnapshotId]) -> Mapping[SnapshotId, int]:
        return await self._run_long(self._costs, ids)

    async def pack(self, id: SnapshotId, base: SnapshotId | None) -> None:
        async with self._lock(id):
            if self._held[id]:
                return
            try:
                manifest, folder, _ = await self._run(self._look, id)
            except EverforgeError:
                return  # it was deleted meanwhile, or is damaged: then nothing more is to be done to it
            await to_its_end(self._run_long(self._packed.drop_working_copy, id))
            large = await self._run(large_files, folder, self._packed_bytes, self._disk)
            # Asked again: whoever has come for it meanwhile waits for the lock, and should not wait for a packing too.
            if manifest.machine is not None and large and not self._held[id]:
                job = Job(root=str(self.root), machine=manifest.machine, snapshot=id, base=base, bytes_min=self._packed_bytes)
                await self._do_unless_stopped(id, job)

    async def _do_unless_stopped(self, id: SnapshotId, job: Job) -> None:
        doing = self._packing[id] = asyncio.ensure_future(self._packer.do(job))
        try:
            await asyncio.wait([doing])
        finally:
            del self._packing[id]
            doing.cancel()
            await asyncio.wait([doing])
        if not doing.cancelled():
            doing.result()

    def _stop_packing(self, id: SnapshotId) -> None:
        """Somebody wants it now. Wherever its packing is, it can end there."""
        if doing := self._packing.get(id):
            doing.cancel()

    async def delete(self, id: SnapshotId) -> None:
        """One that is not there is fine: it is as asked."""
        self._folder(id)
        with self.hold(id):
            await to_its_end(self._delete_one(id))

    async def _delete_one(self, id: SnapshotId) -> None:
        async with self._lock(id):
            machine = await self._run_long(self._delete, self._folder(id))
        if machine is not None:
            self._to_collect.add(machine)
            if self._collecting is None or self._collecting.done():
                self._collecting = asyncio.create_task(self._collect())

    async def _collect(self) -> None:
        """Behind the answer: which pages did only a dropped point need?"""
        while self._to_collect:
            await asyncio.sleep(COLLECT_PAUSE_SECONDS)  # several are often dropped together
            machine = self._to_collect.pop()
            try:
                await self._packer.do(Job(root=str(self.root), machine=machine))
            except BaseException:
                self._to_collect.add(machine)
                raise

    async def sweep(self, keep: frozenset[SnapshotId], partials_too: bool) -> int:
        return await self._run_long(self._sweep, keep, partials_too)

    async def close(self) -> None:
        if self._collecting is not None:
            self._collecting.cancel()  # pages that nobody needs may stay a while longer
            await asyncio.wait([self._collecting])
        await self._packer.close()
        try:
            await asyncio.to_thread(self._packed.remove_empty, frozenset(self._to_collect))
        finally:
            await asyncio.to_thread(self._quick.shutdown)
            await asyncio.to_thread(self._bulk.shutdown)

    async def _finish(self, partial: Path, manifest: Manifest) -> Manifest:
        try:
            final = self._folder(manifest.snapshot)
            sizes = await self._run(self._disk.sizes, partial)
            for name in sizes:
                if not manifests.safe_file_name(name):
                    raise SnapshotDamaged(f"the engine saved a file named {name!r}, which a snapshot cannot hold", file=name)
            paths = [partial / name for name in sizes]
            # Both at once: hashing takes a processor, syncing takes the disk.
            syncing = asyncio.ensure_future(all_of(self._bulk, [functools.partial(self._disk.sync, path) for path in paths]))
            try:
                hashed = await all_of(self._bulk, [functools.partial(self._disk.hash_file, path) for path in paths])
            finally:
                await asyncio.wait([syncing])
            syncing.result()
            manifest = replace(manifest, files=dict(zip(sizes, hashed, strict=True)))
            await self._run(self._seal, partial, final, manifest)
        except BaseException as e:
            await self.abandon(partial)
            if isinstance(e, OSError):
                raise not_saved(e, self.root) from e
            raise
        return manifest

    # --- below: in threads ---------------------------------------------------------------------------------------------------------

    def _begin(self) -> Path:
        partial = self.root / f"{PARTIAL}{secrets.token_hex(8)}"
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._disk.make_folder(partial)
        except OSError as e:
            raise not_saved(e, self.root) from e
        return partial

    def _seal(self, partial: Path, final: Path, manifest: Manifest) -> None:
        # The order is the safety: contents, then the names in the folder, then the folder's own name, then that name on the disk.
        self._disk.write_file(partial / manifests.NAME, manifests.encode(manifest))
        self._disk.sync(partial)
        self._disk.rename(partial, final)
        self._disk.sync(self.root)

    def _open_whole(self, id: SnapshotId) -> tuple[Manifest, Path, bool]:
        manifest, folder, packed = self._look(id)
        if not packed:
            check_sizes(manifest, folder, self._disk)
        return manifest, folder, packed

    def _look(self, id: SnapshotId) -> tuple[Manifest, Path, bool]:
        """Manifest, folder, and whether some of its files lie in a pack."""
        folder = self._folder(id)
        if folder.is_symlink():
            raise damaged(id, folder.name, "is a link, and not the folder that was saved")
        try:
            data = self._disk.read_file(folder / manifests.NAME, manifests.SIZE_MAX)
        except FileNotFoundError as e:
            if folder.is_dir():
                raise damaged(id, manifests.NAME, "is missing") from e
            raise SnapshotNotFound(f"there is no snapshot {id}", snapshot=id) from e
        except OSError as e:
            raise damaged(id, manifests.NAME, f"cannot be read: {e.strerror}") from e
        manifest = manifests.decode(data, id)
        packed = self._packed.is_packed(manifest, set(sizes_in(id, folder, self._disk)))
        return manifest, folder, packed

    def _is_unpacked(self, id: SnapshotId) -> bool:
        return self._packed.has_working_copy(id) or bool(large_files(self._folder(id), self._packed_bytes, self._disk))

    def _costs(self, ids: Sequence[SnapshotId]) -> dict[SnapshotId, int]:
        found: list[tuple[Manifest, Path]] = []
        for id in ids:
            with suppress(EverforgeError):  # damaged ones count as what they were
                manifest, folder, packed = self._look(id)
                found += [(manifest, folder)] if packed else []
        return self._packed.costs(found)

    async def _verify(self, manifest: Manifest, folder: Path, executor: Executor, which: Callable[[int], bool]) -> None:
        names = [name for name, (size, _) in manifest.files.items() if which(size)]
        await all_of(executor, [functools.partial(check_hash, manifest, folder, name, self._disk) for name in names])

    def _delete(self, folder: Path) -> str | None:
        """The machine in whose pack there may now be pages that nobody needs."""
        id, machine = SnapshotId(folder.name), self._machine_of(folder)
        gone = self.root / f"{GONE}{folder.name}-{secrets.token_hex(4)}"
        try:
            folder.rename(gone)  # first the name: half a snapshot must never be found under it
        except FileNotFoundError:
            return None
        except OSError as e:
            raise EverforgeError(f"snapshot {folder.name} could not be deleted: {e.strerror}") from e
        self._remove(gone)
        return machine if self._packed.forget(id, machine) else None

    def _machine_of(self, folder: Path) -> str | None:
        """None when it cannot be known: then the sweep at the next start finds what is left of it in a pack."""
        try:
            return manifests.decode(self._disk.read_file(folder / manifests.NAME, manifests.SIZE_MAX), SnapshotId(folder.name)).machine
        except (OSError, SnapshotDamaged):
            return None

    def _remove(self, folder: Path) -> None:
        try:
            self._disk.remove_tree(folder)
        except FileNotFoundError:
            pass
        except OSError as e:
            log.warning("%s could not be removed, the next sweep tries again: %s", folder, e)

    def _sweep(self, keep: frozenset[SnapshotId], partials_too: bool) -> int:
        removed = 0
        for folder in sorted(self.root.iterdir()) if self.root.is_dir() else []:
            if folder.name.startswith(GONE) or (partials_too and folder.name.startswith(PARTIAL)):
                self._remove(folder)
                removed += 1
            elif SNAPSHOT_ID.fullmatch(folder.name) and folder.name not in keep:
                self._delete(folder)
                removed += 1
        if partials_too:
            self._packed.sweep()
        return removed

    def _folder(self, id: SnapshotId) -> Path:
        if not SNAPSHOT_ID.fullmatch(id):
            raise SnapshotNotFound(f"{id[:80]!r} is not the id of a snapshot")
        return self.root / id

    def _check_partial(self, partial: Path) -> None:
        if partial.parent != self.root or not partial.name.startswith(PARTIAL):
            raise ValueError(f"{partial} is not a partial folder of {self.root}")

    def _lock(self, id: SnapshotId) -> asyncio.Lock:
        return self._locks.setdefault(id, asyncio.Lock())

    async def _run(self, work: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._quick, work, *args)

    async def _run_long(self, work: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._bulk, work, *args)
