"""What lies in a folder of snapshots, and whether somebody needs it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def strangers(snapshots: Path, known: Iterable[str]) -> set[str]:
    """What belongs to none of the known snapshots: neither one itself, nor its working copy, nor a pack that holds only such."""
    needed = set(known)
    return {path.name for path in snapshots.iterdir() if not _belongs(path, needed)}


def _belongs(path: Path, known: set[str]) -> bool:
    if path.name.startswith(".pack-"):
        indexes = {entry.name for entry in path.iterdir() if entry.name.startswith("p") and entry.name != "pages"} if path.is_dir() else set[str]()
        return bool(indexes) and indexes <= known
    return path.name.removeprefix(".unpacked-") in known
