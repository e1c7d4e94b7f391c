"""Numbers as they are written in addresses and headers. No I/O."""

from __future__ import annotations

import re

_WHOLE = re.compile("[0-9]{1,18}")  # what fits into 64 bits, whatever the digits


def whole(text: str) -> int | None:
    """A number from 0 that is written in plain digits; None for anything else."""
    return int(text) if _WHOLE.fullmatch(text) else None
