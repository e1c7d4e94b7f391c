"""`everforge machine files put`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ...options import Json, Name


def put(
    name: Name,
    local: Annotated[str, typer.Argument(metavar="LOCAL", help="A file or folder of this computer.")],
    path: Annotated[str | None, typer.Argument(metavar="PATH", help="Where to, from the home folder or absolute. [default: its own name]")] = None,
    json: Json = False,
) -> None:
    """Copy a file, or a folder with all that is in it, to a machine. Whole or not at all; folders on the way are made.

    A PATH that ends with / is a folder to put it into. Works on a sleeping machine, too.

    Example: everforge machine files put first sales.csv data/
    """
    from ... import failures
    from ...connection import machine_named
    from ...progress import transfer
    from ...tables import print_json, size

    own = Path(os.path.abspath(local)).name  # noqa: PTH100 - of `.` and `..`, too, and without following links
    target = own if path is None else path + own if path.endswith("/") else path
    with machine_named(name) as machine, failures.local(local), transfer(local) as progress:
        send = machine.files.upload_folder if Path(local).is_dir() else machine.files.upload
        done = send(local, target, progress=progress)
    print_json(done) if json else print(f"{done.path}: {size(done.size_bytes)}")
