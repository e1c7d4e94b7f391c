"""Snapshots as folders on a local disk, `ROOT/<id>/`, each with a manifest.

What is not finished, or half deleted, has another name: a crash leaves nothing that looks whole and is not.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from everforge.wire.errors import EverforgeError, SnapshotDamaged, SnapshotNotFound
from everforge.wire.ids import SNAPSHOT_ID, SnapshotId

from . import manifests
from .base import Manifest
from .disk import Disk, not_saved

log = logging.getLogger(__name__)
T = TypeVar("T")

PARTIAL = ".partial-"
GONE = ".gone-"  # being deleted
SMALL_BYTES = 4 * 1024 * 1024  # hashed in about 4 ms; larger files are hashed beside the restore
THREADS = 4  # at once, of each kind: more would only make the disk seek


class SnapshotFolder:
    def __init__(self, root: Path, *, disk: Disk | None = None, small_bytes: int = SMALL_BYTES) -> None:
        self.root = root
        self._disk = disk or Disk()
        self._small_bytes = small_bytes
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
        finishing = asyncio.ensure_future(self._finish(partial, manifest))
        try:
            return await asyncio.shield(finishing)
        except asyncio.CancelledError:
            await asyncio.wait([finishing])
            raise

    async def abandon(self, partial: Path) -> None:
        """Twice is fine."""
        self._check_partial(partial)
        await self._run_long(self._remove, partial)

    async def open(self, id: SnapshotId) -> tuple[Manifest, Path]:
        return await self._run(self._open, id)

    async def verify_small(self, manifest: Manifest, folder: Path) -> None:
        await self._verify(manifest, folder, self._quick, lambda size: size <= self._small_bytes)

    async def verify_large(self, manifest: Manifest, folder: Path) -> None:
        await self._verify(manifest, folder, self._bulk, lambda size: size > self._small_bytes)

    async def delete(self, id: SnapshotId) -> None:
        """One that is not there is fine: it is as asked."""
        folder = self._folder(id)
        await self._run_long(self._delete, folder)

    async def sweep(self, keep: frozenset[SnapshotId], partials_too: bool) -> int:
        return await self._run_long(self._sweep, keep, partials_too)

    async def close(self) -> None:
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
            syncing = asyncio.ensure_future(_all(self._bulk, [functools.partial(self._disk.sync, path) for path in paths]))
            try:
                hashed = await _all(self._bulk, [functools.partial(self._disk.hash_file, path) for path in paths])
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

    def _open(self, id: SnapshotId) -> tuple[Manifest, Path]:
        folder = self._folder(id)
        try:
            data = self._disk.read_file(folder / manifests.NAME, manifests.SIZE_MAX)
        except FileNotFoundError as e:
            if folder.is_dir():
                raise _damaged(id, manifests.NAME, "is missing") from e
            raise SnapshotNotFound(f"there is no snapshot {id}", snapshot=id) from e
        except OSError as e:
            raise _damaged(id, manifests.NAME, f"cannot be read: {e.strerror}") from e
        manifest = manifests.decode(data, id)
        self._check_sizes(manifest, folder)
        return manifest, folder

    def _check_sizes(self, manifest: Manifest, folder: Path) -> None:
        try:
            sizes = self._disk.sizes(folder)
        except OSError as e:
            raise _damaged(manifest.snapshot, str(e.filename or folder.name), e.strerror or "cannot be read") from e
        sizes.pop(manifests.NAME, None)
        for name, (size, _) in manifest.files.items():
            found = sizes.pop(name, None)
            if found is None:
                raise _damaged(manifest.snapshot, name, "is missing")
            if found != size:
                raise _damaged(manifest.snapshot, name, f"is {'truncated' if found < size else 'too long'}: {found} bytes instead of {size}")
        if sizes:
            raise _damaged(manifest.snapshot, min(sizes), "does not belong to it")

    async def _verify(self, manifest: Manifest, folder: Path, executor: Executor, which: Callable[[int], bool]) -> None:
        def check(name: str) -> None:
            size, digest = manifest.files[name]
            try:
                found = self._disk.hash_file(folder / name)
            except FileNotFoundError as e:
                raise _damaged(manifest.snapshot, name, "is missing") from e
            except OSError as e:
                raise _damaged(manifest.snapshot, name, f"cannot be read: {e.strerror}") from e
            if found != (size, digest):
                what = "has changed: its hash is another" if found[0] == size else f"has {found[0]} bytes instead of {size}"
                raise _damaged(manifest.snapshot, name, what)

        await _all(executor, [functools.partial(check, name) for name, (size, _) in manifest.files.items() if which(size)])

    def _delete(self, folder: Path) -> None:
        gone = self.root / f"{GONE}{folder.name}-{secrets.token_hex(4)}"
        try:
            folder.rename(gone)  # first the name: half a snapshot must never be found under it
        except FileNotFoundError:
            return
        except OSError as e:
            raise EverforgeError(f"snapshot {folder.name} could not be deleted: {e.strerror}") from e
        self._remove(gone)

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
        return removed

    def _folder(self, id: SnapshotId) -> Path:
        if not SNAPSHOT_ID.fullmatch(id):
            raise SnapshotNotFound(f"{id[:80]!r} is not the id of a snapshot")
        return self.root / id

    def _check_partial(self, partial: Path) -> None:
        if partial.parent != self.root or not partial.name.startswith(PARTIAL):
            raise ValueError(f"{partial} is not a partial folder of {self.root}")

    async def _run(self, work: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._quick, work, *args)

    async def _run_long(self, work: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._bulk, work, *args)


async def _all(executor: Executor, works: Sequence[Callable[[], T]]) -> list[T]:
    """Beside each other. All have ended when this returns or raises, so that nobody still reads what is then removed."""
    loop = asyncio.get_running_loop()
    results = await asyncio.gather(*(loop.run_in_executor(executor, work) for work in works), return_exceptions=True)
    done: list[T] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        done.append(result)
    return done


def _damaged(id: SnapshotId, file: str, what: str) -> SnapshotDamaged:
    return SnapshotDamaged(f"snapshot {id}: {file} {what}", snapshot=id, file=file)
