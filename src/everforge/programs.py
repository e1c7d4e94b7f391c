"""Other programs that ours needs, and where they are."""

from __future__ import annotations

import os
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


def uv_environment() -> dict[str, str]:
    """The host's own, since it says which index to use, but not in which project we stand. Certificates are the system's, as for every other
    program: behind a company's proxy uv's own would not do."""
    kept = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "UV_PROJECT", "PYTHONPATH")}
    return {"UV_SYSTEM_CERTS": "1", **kept, "UV_NO_CONFIG_WARNING": "1"}
