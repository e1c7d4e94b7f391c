"""The few colours that there are, and whether there are any."""

from __future__ import annotations

import os
from typing import IO

RESET = "\x1b[0m"
COLOURS = {"stderr": "\x1b[31m", "error": "\x1b[31m", "note": "\x1b[2m", "code": "\x1b[36m", "strong": "\x1b[1m", "value": "", "stdout": ""}


def wanted(file: IO[str]) -> bool:
    return file.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(kind: str, text: str) -> str:
    """Whatever colours the text itself has, they end with it."""
    colour = COLOURS[kind]
    return f"{colour}{text}{RESET}" if text and (colour or "\x1b" in text) else text


def paint_traceback(text: str) -> str:
    """Where in one colour, what in another."""
    lines = text.split("\n")
    last = max((i for i, line in enumerate(lines) if line[:1].strip() and not line.startswith("[")), default=0)
    return "\n".join(paint("code" if line.startswith("  File ") else "error" if i >= last else "value", line) for i, line in enumerate(lines))
