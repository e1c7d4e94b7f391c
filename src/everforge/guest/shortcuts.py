"""The three messages that every instruction has, read the short way where they look as usual. Anything else is None here, and goes the long way.

What is taken here is exactly what `wire.messages` would take, with the same outcome. No I/O.
"""

from __future__ import annotations

import json.decoder
import re
from collections.abc import Callable

from ..wire.messages import Run

END_BYTES_MAX = 4096

# The part of the decoder that reads one string, from behind its first quote; gives where it ends too.
_scan: Callable[[str, int], tuple[str, int]] = getattr(json.decoder, "scanstring")  # noqa: B009 - not in its type hints

_ACK = re.compile(rb'\{"upto":(0|[1-9]\d{0,14})\}')
_RUN_HEAD = re.compile(r'\{"instruction":(0|[1-9]\d{0,14}),"code":"')
# A value without rich data, as short text of ASCII, or none.
_END = re.compile(
    rb'\{"instruction":(0|[1-9]\d{0,14}),"end":"value","runtime_us":(?:0|[1-9]\d{0,14})'
    rb'(?:,"value":"[ !#-\[\]-~]*(?:\\["\\nt][ !#-\[\]-~]*)*")?\}'
)


def acknowledged(body: bytes) -> int | None:
    found = _ACK.fullmatch(body)
    return None if found is None else int(found[1])


def run(body: bytes) -> Run | None:
    try:
        text = body.decode()
        head = _RUN_HEAD.match(text)
        if head is None or "\\ud" in text or "\\uD" in text:  # half a surrogate pair needs a closer look
            return None
        code, end = _scan(text, head.end())
    except ValueError:
        return None
    return Run(int(head[1]), code) if text[end:] == "}" else None


def ended(body: bytes) -> int | None:
    """The instruction that has ended with a plain value; then `body` is a sound message as it is."""
    found = _END.fullmatch(body) if len(body) <= END_BYTES_MAX else None
    return None if found is None else int(found[1])
