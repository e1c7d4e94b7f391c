"""`everforge machine delete`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ..names import complete_names
from ..options import Json


def delete(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Machines.", autocompletion=complete_names)],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Delete machines for ever. Memory, files, snapshots and tape go with them; asks first on a terminal.

    Example: everforge machine delete first --yes
    """
    from ..connection import machine_named
    from ..progress import waiting
    from ..tables import on_terminal, print_json

    if not yes and on_terminal(sys.stdin) and on_terminal(sys.stderr):
        typer.confirm(f"Delete {', '.join(names)} for ever?", abort=True, err=True)
    gone: list[str] = []
    for name in names:
        with machine_named(name) as machine, waiting(f"deleting {name}"):
            machine.delete()
        gone.append(name)
        if not json:
            print(f"deleted {name}", flush=True)
    if json:
        print_json({"deleted": gone})
