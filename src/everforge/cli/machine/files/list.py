"""`everforge machine files list`."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Annotated

import typer

from ...options import Json, Name

if TYPE_CHECKING:
    from everforge.wire import api

HEADING = ("MODE", "SIZE", "MODIFIED", "NAME")
KINDS = {"folder": stat.S_IFDIR, "link": stat.S_IFLNK, "file": stat.S_IFREG}


def list_(
    name: Name,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A folder, from the home folder or absolute. [default: the home folder]")] = "",
    json: Json = False,
) -> None:
    """What lies in a folder of a machine.

    Example: everforge machine files list first data
    """
    from ...connection import machine_named
    from ...tables import print_json, print_rows

    with machine_named(name) as machine:
        found = machine.files.list(path)
        print_json(list(found)) if json else print_rows(HEADING, (_row(file) for file in found))


def _row(file: api.File) -> tuple[object, ...]:
    from ...tables import moment

    shown = file.name if file.target is None else f"{file.name} -> {file.target}"
    return stat.filemode(KINDS.get(file.kind, 0) | stat.S_IMODE(file.mode)), file.size_bytes, moment(file.modified_at), shown
