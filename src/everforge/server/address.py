"""Where the server of a data folder is, for those on this computer: a small file beside its machines."""

from __future__ import annotations

import json
import os
from pathlib import Path

from everforge.store.disk import FULL

FILE = "server.json"


def tell(data: Path, url: str) -> None:
    """On a full disk as what a link points to, which needs no room: just then the server must be found, to delete what takes it."""
    new = data / f"{FILE}.new"
    new.unlink(missing_ok=True)
    told = json.dumps({"url": url, "pid": os.getpid()})
    try:
        new.write_text(told + "\n", encoding="ascii")
    except OSError as e:
        if e.errno not in FULL:
            raise
        new.unlink(missing_ok=True)
        new.symlink_to(told)
    new.replace(data / FILE)


def forget(data: Path) -> None:
    (data / FILE).unlink(missing_ok=True)


def find(data: Path) -> str | None:
    """None when none runs."""
    try:
        place = data / FILE
        # Not by pathlib, which would make one slash of two.
        told = json.loads(os.readlink(place) if place.is_symlink() else place.read_text(encoding="ascii"))  # noqa: PTH115
        os.kill(int(told["pid"]), 0)
        return str(told["url"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
