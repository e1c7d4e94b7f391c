"""Pictures: shown where the terminal can, else kept in files."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from everforge.client.results import mime_bundle
from everforge.folders import state_folder

PICTURE_BYTES_MAX = 16 * 1024 * 1024
FILES_MAX = 200  # the oldest go first
CHUNK = 4096  # what kitty takes at once
KINDS = {"image/png": (".png", b"\x89PNG\r\n\x1a\n"), "image/jpeg": (".jpg", b"\xff\xd8\xff"), "image/svg+xml": (".svg", b"")}

Way = Literal["kitty", "iterm", "none"]


def way(environ: Mapping[str, str] = os.environ) -> Way:
    """How this terminal shows pictures, by what it says of itself. Inside tmux or screen it is not this terminal that listens."""
    term, program = environ.get("TERM", ""), environ.get("TERM_PROGRAM", "")
    if environ.get("TMUX") or term.startswith(("screen", "tmux")):
        return "none"
    if "kitty" in term or environ.get("KITTY_WINDOW_ID") or program == "ghostty" or "ghostty" in term:
        return "kitty"
    if program in ("iTerm.app", "WezTerm", "mintty") or environ.get("LC_TERMINAL") == "iTerm2":
        return "iterm"
    return "none"


def picture_of(data: Mapping[str, Any] | None) -> tuple[str, bytes] | None:
    """The first of a bundle that is what it says it is: its MIME type and bytes."""
    bundle = mime_bundle(data)
    for mime, (_, magic) in KINDS.items():
        found = bundle.get(mime)
        if not isinstance(found, str):
            continue
        try:
            content = found.encode() if mime == "image/svg+xml" else base64.b64decode(found)
        except ValueError:
            continue
        if content.startswith(magic) and len(content) <= PICTURE_BYTES_MAX:
            return mime, content
    return None


class Pictures:
    def __init__(self, machine: str, way: Way, folder: Path | None = None) -> None:
        self._machine = re.sub(r"[^a-z0-9-]", "", machine)
        self._way: Way = way
        self._folder = folder or state_folder() / "pictures"

    def shown(self, mime: str, content: bytes, number: int) -> str:
        """What to write to the terminal: the picture itself, or where it lies."""
        if self._way == "kitty" and mime == "image/png":
            return _kitty(content)
        if self._way == "iterm" and mime != "image/svg+xml":
            return f"\x1b]1337;File=inline=1;size={len(content)}:{base64.b64encode(content).decode()}\x07\n"
        try:
            return f"[picture: {self._keep(content, KINDS[mime][0], number)}]\n"
        except OSError as e:
            return f"[a picture that could not be written to {self._folder}: {(e.strerror or str(e)).lower()}]\n"

    def _keep(self, content: bytes, suffix: str, number: int) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        kept = sorted(self._folder.glob("*.*"), key=lambda path: path.lstat().st_mtime)
        for old in kept[: max(0, len(kept) + 1 - FILES_MAX)]:
            old.unlink(missing_ok=True)
        path = self._folder / f"{self._machine}-{number}{suffix}"
        new = path.with_name(f".{path.name}.{os.getpid()}")
        new.write_bytes(content)
        return new.replace(path)


def _kitty(content: bytes) -> str:
    text = base64.b64encode(content).decode()
    chunks = [text[i : i + CHUNK] for i in range(0, len(text), CHUNK)]
    last = len(chunks) - 1
    parts = [f"\x1b_G{'a=T,f=100,q=2,' if i == 0 else ''}m={int(i < last)};{chunk}\x1b\\" for i, chunk in enumerate(chunks)]
    return "".join(parts) + "\n"
