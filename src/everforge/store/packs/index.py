"""The index of a packed snapshot: where each page of its large files lies. Written once, with a checksum over itself; whatever is read back is
an index or damage."""

from __future__ import annotations

import hashlib
import json
import sys
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from everforge.store.manifests import safe_file_name
from everforge.wire.errors import SnapshotDamaged
from everforge.wire.ids import SnapshotId

PAGE_BYTES = 4096  # what a guest changes its memory by
FORMAT = 1
INDEX_BYTES_MAX = 64 * 1024 * 1024  # as read, and as unfolded: 8 GB whose every other page has changed take 24 MB
DIGEST_BYTES = 32
FIELDS = 3  # of a run

# Where a run of pages lies: nowhere, since all of it is zero; in the pack; in the base, a file that the pack was told to compare with.
ZERO, PACK, BASE = range(3)


class Runs:
    """Pages that follow each other both in the file and where they lie, as flat triples of (where, first page there, how many)."""

    def __init__(self) -> None:
        self.flat = array("I")

    def add(self, source: int, first: int, count: int = 1) -> None:
        flat = self.flat
        if flat and flat[-3] == source and (source == ZERO or flat[-2] + flat[-1] == first):
            flat[-1] += count
        else:
            flat.extend((source, first, count))

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        return zip(self.flat[0::FIELDS], self.flat[1::FIELDS], self.flat[2::FIELDS], strict=True)

    @property
    def pages(self) -> int:
        return sum(self.flat[2::FIELDS])


@dataclass(frozen=True, slots=True)
class Index:
    snapshot: SnapshotId
    base: str | None  # the name of a file in the pack
    files: dict[str, tuple[int, Runs]] = field(default_factory=dict[str, tuple[int, Runs]])  # name -> (bytes, runs)


def pages_of(size: int) -> int:
    return -(-size // PAGE_BYTES)


def encode(index: Index) -> bytes:
    header = {
        "format": FORMAT,
        "byteorder": sys.byteorder,
        "snapshot": index.snapshot,
        "base": index.base,
        "files": {name: [size, len(runs.flat)] for name, (size, runs) in index.files.items()},
    }
    body = b"".join([json.dumps(header).encode("ascii"), b"\n", *(runs.flat.tobytes() for _, runs in index.files.values())])
    folded = zlib.compress(body, 1)
    return _digest(folded) + folded


def decode(data: bytes, snapshot: SnapshotId) -> Index:
    """Raises SnapshotDamaged, whatever the bytes are."""
    folded = data[DIGEST_BYTES:]
    if data[:DIGEST_BYTES] != _digest(folded):
        raise damaged(snapshot, "does not have its own checksum: a bit has changed")
    try:
        unfolding = zlib.decompressobj()
        body = unfolding.decompress(folded, INDEX_BYTES_MAX)
        first, _, rest = body.partition(b"\n")
        header: Any = json.loads(first)
    except (zlib.error, ValueError, RecursionError) as e:
        raise damaged(snapshot, "cannot be read") from e
    if not unfolding.eof or not isinstance(header, dict):
        raise damaged(snapshot, "is not one")
    return _index(cast(dict[str, Any], header), rest, snapshot)


def _index(header: dict[str, Any], rest: bytes, snapshot: SnapshotId) -> Index:
    if header.get("format") != FORMAT or header.get("byteorder") != sys.byteorder:
        raise damaged(snapshot, f"is not of format {FORMAT} in the byte order of this computer")
    base, listed = header.get("base"), header.get("files")
    if header.get("snapshot") != snapshot or not isinstance(base, str | None) or not isinstance(listed, dict):
        raise damaged(snapshot, "belongs to another snapshot")
    if base is not None and not safe_file_name(base):
        raise damaged(snapshot, "names a base that cannot be one")
    index = Index(snapshot, base)
    for name, entry in cast(dict[str, Any], listed).items():
        rest = _add(index, name, entry, rest)
    if rest:
        raise damaged(snapshot, "is too long")
    return index


def _add(index: Index, name: str, entry: Any, rest: bytes) -> bytes:
    fits = isinstance(entry, list) and len(cast(list[Any], entry)) == 2 and all(type(n) is int and n >= 0 for n in cast(list[Any], entry))
    if not fits or not safe_file_name(name):
        raise damaged(index.snapshot, "does not have the fields of one")
    size, length = cast(list[int], entry)
    runs = Runs()
    count = length * runs.flat.itemsize
    if length % FIELDS or count > len(rest):
        raise damaged(index.snapshot, "is too short")
    runs.flat.frombytes(rest[:count])
    sources = set(runs.flat[0::FIELDS])
    if not sources <= {ZERO, PACK, BASE} or (BASE in sources and index.base is None) or runs.pages != pages_of(size):
        raise damaged(index.snapshot, f"does not say where all of {name} lies")
    index.files[name] = (size, runs)
    return rest[count:]


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


def damaged(snapshot: SnapshotId, what: str) -> SnapshotDamaged:
    return SnapshotDamaged(f"snapshot {snapshot}: the index of its packed files {what}", snapshot=snapshot, file="index")
