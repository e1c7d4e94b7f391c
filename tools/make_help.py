"""The help of every command, ahead of time: src/everforge/cli/help.txt from the commands themselves.

`make fix` writes it, `make check` compares.
"""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from everforge.cli.app import app
from everforge.cli.helptexts import FILE, MARK

TARGET = Path(__file__).resolve().parents[1] / "src/everforge/cli" / FILE


def texts(command: typer.core.TyperCommand, context: typer.Context) -> list[str]:
    found = [context.get_help() + "\n"]
    for name, below in getattr(command, "commands", {}).items():
        found += texts(below, below.make_context(name, [], parent=context, resilient_parsing=True))
    return found


def main() -> int:
    command = typer.main.get_command(app)
    wanted = MARK.join(texts(command, command.make_context("everforge", [], resilient_parsing=True)))
    if TARGET.exists() and TARGET.read_text() == wanted:
        return 0
    if "--check" in sys.argv[1:]:
        print(f"src/everforge/cli/{FILE} is not what tools/make_help.py makes: run make fix")
        return 1
    TARGET.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
