"""System files of the guest that tell of the world outside: which package index to use, which certificates to trust.

They belong to the agent. A user cannot change them, and need not: settings of one's own come before them everywhere.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from .processes import is_privileged

CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
PLACES = {"pip.conf": "/etc/pip.conf", "certificates": CERTIFICATES}
MARK = "# --- below: given to this machine by its server\n"


_written: dict[str, str] = {}  # what is there already: a machine is told at every wake, and hardly anything of it ever changes


def write(files: Mapping[str, str]) -> None:
    """Names that this guest does not know are left out (a newer keeper). A machine whose disk is full keeps what it has."""
    if not is_privileged():
        return
    for name, text in files.items():
        place = PLACES.get(name)
        if place and _written.get(name, "") != text:
            with contextlib.suppress(OSError):
                _replace(Path(place), _with_certificates(text) if name == "certificates" else text)
                _written[name] = text


def _with_certificates(text: str) -> str:
    """The image's own stay, and come first."""
    present = Path(CERTIFICATES).read_text(encoding="utf-8")
    return present.partition(MARK)[0] + (MARK + text if text else "")


def _replace(place: Path, text: str) -> None:
    beside = place.with_name(f".{place.name}.new")
    beside.write_text(text, encoding="utf-8")
    os.chmod(beside, 0o644)  # noqa: PTH101
    beside.replace(place)
