"""The command that a client is to start: this very program, by a path that holds wherever the client is started from."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def own_program(called: str | None = None, python: str | None = None) -> list[str]:
    """As it was called; else the one beside this Python; else this Python, with the module. Links are kept: they outlive what they lead to."""
    called, python = sys.argv[0] if called is None else called, python or sys.executable or "python3"
    if Path(called).stem.lower() == "everforge":
        found = shutil.which(called)
        if found is not None:
            return [str(Path(found).absolute())]
    for name in ("everforge", "everforge.exe"):
        beside = Path(python).with_name(name)
        if shutil.which(str(beside)) is not None:
            return [str(beside.absolute())]
    return [str(Path(python).absolute()) if Path(python).parent.name else python, "-m", "everforge"]


def serve_command(machine: str | None, conversation: str | None, share: Path | None) -> list[str]:
    given = [("--machine", machine), ("--conversation", conversation), ("--share", None if share is None else str(share.expanduser().absolute()))]
    return [*own_program(), "mcp", "serve", *(word for option, value in given if value is not None for word in (option, value))]
