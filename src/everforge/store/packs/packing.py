"""Packs snapshots, in a process of its own: it hashes a page at a time, which in a thread would take the interpreter's lock from the event loop tens
of thousands of times for each snapshot.

Run as `python -m everforge.store.packs.packing PARENT`: one job per line of standard input, one answer per line of standard output. It ends with its
input, and at once when the server dies; being killed at any step is safe.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import xxhash

from everforge.store import manifests
from everforge.store.checks import damaged
from everforge.store.disk import CHUNK_BYTES, Disk
from everforge.wire.errors import EverforgeError
from everforge.wire.ids import SnapshotId

from .index import BASE, PAGE_BYTES, Index, Runs
from .pack import Pack, folder_of, locked, read_index

FILE_BYTES_MAX = 8 * 1024**3  # two million pages, of which the packer keeps the digests in memory; what is larger stays whole
MEMORY_BYTES_MAX = 2 * 1024**3
NICENESS = 10  # nobody waits for it
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Pack a snapshot, or (with none) only give back what dropped ones took."""

    root: str
    machine: str
    snapshot: SnapshotId | None = None
    base: SnapshotId | None = None
    bytes_min: int = 0


def large_files(folder: Path, bytes_min: int, disk: Disk) -> dict[str, int]:
    """What is worth packing, the largest first; empty when there is no such snapshot."""
    try:
        sizes = disk.sizes(folder)
    except OSError:
        return {}
    large = ((name, size) for name, size in sizes.items() if bytes_min <= size <= FILE_BYTES_MAX and manifests.safe_file_name(name))
    return dict(sorted(large, key=lambda file: file[1], reverse=True))


def run(job: Job, disk: Disk) -> None:
    """Raises OSError, EverforgeError, MemoryError; then the snapshot is as it was."""
    root = Path(job.root)
    folder = folder_of(root, job.machine)
    if folder is None:
        raise ValueError(f"{job.machine!r} is not the id of a machine")
    files = {} if job.snapshot is None else large_files(root / job.snapshot, job.bytes_min, disk)
    if not folder.is_dir():
        if not files:
            return
        disk.make_folder(folder)
    with locked(folder), Pack(folder, disk) as pack:
        try:
            if job.snapshot is not None and files:
                _pack(job, job.snapshot, files, pack, disk)
        except BaseException:
            with contextlib.suppress(OSError):
                pack.collect()
            raise
        pack.collect()


def _pack(job: Job, snapshot: SnapshotId, files: dict[str, int], pack: Pack, disk: Disk) -> None:
    root = Path(job.root)
    if (begun := _begun(root, job.machine, snapshot, disk)) is not None:
        # It was ended between the index and the last file. The index may be all that is left of the files that are gone: it is never replaced.
        _remove(root / snapshot, [name for name, size in files.items() if name in begun.files and begun.files[name][0] == size], disk)
        return
    if job.base is not None:
        _use_base(root / job.base, job.base, next(iter(files)), pack, disk)
    index = Index(snapshot, pack.base.name if pack.base else None)
    manifest = manifests.decode(disk.read_file(root / snapshot / manifests.NAME, manifests.SIZE_MAX), snapshot)
    for name, size in files.items():
        runs, digest = _place_all(root / snapshot / name, size, pack, disk)
        if manifest.files.get(name) != (size, digest):
            raise damaged(snapshot, name, "is not what was saved: it is left as it is")
        index.files[name] = size, runs
    pack.add(index)
    _remove(root / snapshot, files, disk)  # only now, when every page of it is durable elsewhere


def _begun(root: Path, machine: str, snapshot: SnapshotId, disk: Disk) -> Index | None:
    """The index of an earlier packing. Raises SnapshotDamaged when it cannot be read: then nothing more is done to it."""
    folder = folder_of(root, machine)
    assert folder is not None
    try:
        return read_index(folder, snapshot, disk)
    except FileNotFoundError:
        return None


def _remove(folder: Path, names: Iterable[str], disk: Disk) -> None:
    for name in names:
        disk.remove_file(folder / name)


def _use_base(folder: Path, id: SnapshotId, name: str, pack: Pack, disk: Disk) -> None:
    """The same file of the template, when there is one."""
    try:
        manifest = manifests.decode(disk.read_file(folder / manifests.NAME, manifests.SIZE_MAX), id)
    except (OSError, EverforgeError):
        return
    if manifest.machine is None and name in manifest.files:
        pack.use_base(folder / name, manifest.files[name][1])


def _place_all(path: Path, size: int, pack: Pack, disk: Disk) -> tuple[Runs, str]:
    """Where its pages lie now, and the hash of what was read: what is packed is what was saved, or it is not packed."""
    runs, digest = Runs(), xxhash.xxh3_128()
    descriptor = disk.open_file(path)
    try:
        for offset in range(0, size, CHUNK_BYTES):
            data = disk.read_at(descriptor, min(CHUNK_BYTES, size - offset), offset)
            digest.update(data)
            _place(data, offset // PAGE_BYTES, runs, pack)
    finally:
        os.close(descriptor)
    return runs, digest.hexdigest()


def _place(data: bytes, first_page: int, runs: Runs, pack: Pack) -> None:
    # Most pages are where they are in the template: comparing is fifteen times as fast as hashing.
    alike = pack.base.read(first_page, len(data)) if pack.base else b""
    for at in range(0, len(data), PAGE_BYTES):
        page = data[at : at + PAGE_BYTES].ljust(PAGE_BYTES, b"\0")
        if page == alike[at : at + PAGE_BYTES]:
            runs.add(BASE, first_page + at // PAGE_BYTES)
        else:
            runs.add(*pack.place(page))


# --- the process -------------------------------------------------------------------------------------------------------------------------


def encode(job: Job) -> bytes:
    return json.dumps(asdict(job)).encode("ascii") + b"\n"


def _answer(line: str) -> dict[str, object]:
    try:
        run(Job(**json.loads(line)), Disk())
    except (OSError, EverforgeError) as e:
        return {"error": str(e)}
    except MemoryError:
        return {"error": "it takes more memory than the packer may have"}
    return {}


def main() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        return  # the server was gone before we asked to die with it
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    for line in sys.stdin:
        print(json.dumps(_answer(line)), flush=True)


if __name__ == "__main__":
    main()
