"""What was typed at prompts, one file for each server: JSON strings, one a line, for nobody else to read."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit.history import History

from everforge.folders import state_folder

ENTRIES_MAX = 5_000
FILE_BYTES_MAX = 4 * 1024 * 1024
ENTRY_BYTES_MAX = 64 * 1024  # what is longer was pasted, and lies elsewhere


def history_path(base_url: str) -> Path:
    name = re.sub(r"[^a-z0-9.]+", "-", base_url.split("://")[-1].lower())[:60]
    return state_folder() / "history" / f"{name}-{hashlib.sha256(base_url.encode()).hexdigest()[:8]}.jsonl"


class KeptHistory(History):
    """Where it cannot be kept, it is there for as long as the prompt is."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._last: str | None = None

    def load_history_strings(self) -> Iterable[str]:
        """The newest first."""
        try:
            found = self._read()
        except OSError:
            found = []
        self._last = found[-1] if found else None
        return reversed(found)

    def store_string(self, string: str) -> None:
        if string == self._last:
            return
        self._last = string
        data = json.dumps(string).encode() + b"\n"
        if len(data) <= ENTRY_BYTES_MAX:
            try:
                self._append(data)
            except OSError:
                pass  # a full disk is no reason not to work on

    def _append(self, data: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            os.fchmod(handle, 0o600)
            os.write(handle, data)
        finally:
            os.close(handle)

    def _read(self) -> list[str]:
        handle = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(handle, "r+b") as file:
            fcntl.flock(handle, fcntl.LOCK_EX)
            size = os.fstat(handle).st_size
            file.seek(max(0, size - FILE_BYTES_MAX))
            lines = file.read(FILE_BYTES_MAX).split(b"\n")
            found = [text for text in map(_text, lines) if text is not None]
            if len(found) > ENTRIES_MAX or size > FILE_BYTES_MAX:
                found = found[-ENTRIES_MAX // 2 :]
                file.seek(0)
                file.truncate()
                file.write(b"".join(json.dumps(text).encode() + b"\n" for text in found))
        return found


def _text(line: bytes) -> str | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None  # half a line, or somebody else's
    return found if isinstance(found, str) else None
