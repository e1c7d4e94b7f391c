"""Where the server of a data folder is, for those on this computer: a small file beside its machines."""

from __future__ import annotations

import json
import os
from pathlib import Path

FILE = "server.json"


def tell(data: Path, url: str) -> None:
    new = data / f"{FILE}.new"
    new.unlink(missing_ok=True)
    new.write_text(json.dumps({"url": url, "pid": os.getpid()}) + "\n", encoding="ascii")
    new.replace(data / FILE)


def forget(data: Path) -> None:
    (data / FILE).unlink(missing_ok=True)


def find(data: Path) -> str | None:
    """None when none runs."""
    try:
        told = json.loads((data / FILE).read_text(encoding="ascii"))
        os.kill(int(told["pid"]), 0)
        return str(told["url"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
