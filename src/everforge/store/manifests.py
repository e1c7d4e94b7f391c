"""A manifest as bytes: JSON with a checksum over itself, so that a flipped bit in it is found as surely as one in the files that it lists. No I/O."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, cast

from everforge.wire.errors import SnapshotDamaged
from everforge.wire.ids import SnapshotId

from .base import Manifest

FORMAT = 2
NAME = "manifest.json"
SIZE_MAX = 1024 * 1024  # a snapshot has a handful of files
FILES_MAX = 1024
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_XXH3 = re.compile(r"[0-9a-f]{32}")
_FIELDS = frozenset(f.name for f in fields(Manifest))
_INTEGERS = ("memory_mb", "disk_mb", "epoch", "sent", "received")
_STRINGS = ("engine", "engine_build", "image")


def safe_file_name(name: str) -> bool:
    """One plain name, not hidden: it cannot climb out of its folder, nor be the manifest."""
    return bool(_FILE_NAME.fullmatch(name)) and name != NAME


def encode(manifest: Manifest) -> bytes:
    body = asdict(manifest) | {"format": FORMAT, "files": {name: list(entry) for name, entry in manifest.files.items()}}
    return json.dumps(body | {"checksum": _checksum(body)}, indent=1, sort_keys=True).encode("ascii") + b"\n"


def decode(data: bytes, id: SnapshotId) -> Manifest:
    """Raises SnapshotDamaged, whatever the bytes are."""
    try:
        found: Any = json.loads(data)
    except (ValueError, RecursionError) as e:
        raise _damaged(id, "is not JSON") from e
    if not isinstance(found, dict):
        raise _damaged(id, "is not a JSON object")
    body = cast(dict[str, Any], found)
    if body.pop("checksum", None) != _checksum(body):
        raise _damaged(id, "does not have its own checksum: a bit has changed")
    if body.pop("format", None) != FORMAT:
        raise _damaged(id, f"is not of format {FORMAT}: it was written by another version")
    if body.keys() != _FIELDS or not _fits(body):
        raise _damaged(id, "does not have the fields of one")
    if body["snapshot"] != id:
        raise _damaged(id, f"belongs to snapshot {body['snapshot']!r}")
    body["files"] = {name: (size, digest) for name, (size, digest) in body["files"].items()}
    manifest = Manifest(**body)
    if encode(manifest) != data:
        raise _damaged(id, "is not as it was written, although its content is: a blank was added or lost")
    return manifest


def _checksum(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()


def _fits(body: Mapping[str, Any]) -> bool:
    return (
        all(type(body[name]) is int for name in _INTEGERS)
        and all(isinstance(body[name], str) for name in _STRINGS)
        and isinstance(body["machine"], str | None)
        and isinstance(body["instruction"], int | None)
        and isinstance(body["created_at"], int | float)
        and _fits_files(body["files"])
    )


def _fits_files(files: Any) -> bool:
    if not isinstance(files, dict) or len(cast(dict[Any, Any], files)) > FILES_MAX:
        return False
    for name, entry in cast(dict[str, Any], files).items():
        if not safe_file_name(name) or not isinstance(entry, list) or len(cast(list[Any], entry)) != 2:
            return False
        size, digest = cast(list[Any], entry)
        if type(size) is not int or size < 0 or not isinstance(digest, str) or not _XXH3.fullmatch(digest):
            return False
    return True


def _damaged(id: SnapshotId, what: str) -> SnapshotDamaged:
    return SnapshotDamaged(f"the manifest of snapshot {id} {what}", snapshot=id, file=NAME)
