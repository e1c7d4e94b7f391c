"""`everforge machine files put`."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ...options import Json, Name


def put(
    name: Name,
    local: Annotated[str, typer.Argument(metavar="LOCAL", help="A file or folder of this computer; - is stdin.")],
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

    target = _target(local, path)
    with machine_named(name) as machine, failures.local(local), _source(local) as source, transfer(local) as progress:
        send = machine.files.upload_folder if Path(source).is_dir() else machine.files.upload
        done = send(source, target, progress=progress)
    print_json(done) if json else print(f"{done.path}: {size(done.size_bytes)}")


def _target(local: str, path: str | None) -> str:
    if local == "-":
        if path is None or path.endswith("/"):
            raise typer.BadParameter("stdin has no name of its own: say which file it becomes", param_hint="PATH")
        return path
    own = Path(os.path.abspath(local)).name  # noqa: PTH100 - of `.` and `..`, too, and without following links
    return own if path is None else path + own if path.endswith("/") else path


@contextmanager
def _source(local: str) -> Generator[str]:
    """What comes on stdin goes to disk first: it is sent again when the connection is cut."""
    if local != "-":
        yield local
        return
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - closed by whoever started us
        raise typer.BadParameter("stdin is closed", param_hint="LOCAL")
    import shutil
    import tempfile

    with tempfile.NamedTemporaryFile(prefix="everforge-") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.flush()
        yield file.name
