"""`everforge machine files delete`."""

from __future__ import annotations

from typing import Annotated

import typer

from ...options import Json, Name


def delete(
    name: Name,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A file or folder of the machine, from its home folder or absolute.")],
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="A folder with all that is in it.")] = False,
    json: Json = False,
) -> None:
    """Delete a file or an empty folder of a machine; with --recursive a folder and all that is in it.

    Example: everforge machine files delete first data --recursive
    """
    from ...connection import machine_named
    from ...tables import print_json

    with machine_named(name) as machine:
        machine.files.delete(path, recursive=recursive)
    print_json({"deleted": True}) if json else print(f"deleted {path}")
