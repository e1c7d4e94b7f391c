"""Other programs that ours needs, and where they are."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def find_uv() -> Path | None:
    """The one installed beside our Python, else the user's."""
    beside = Path(sys.executable).with_name("uv")
    if beside.exists():
        return beside
    found = shutil.which("uv")
    return Path(found) if found else None
