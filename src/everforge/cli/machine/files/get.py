"""`everforge machine files get`."""

from __future__ import annotations

import sys
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...options import Json, Name

if TYPE_CHECKING:
    from everforge import Machine


def get(
    name: Name,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A file or folder of the machine, from its home folder or absolute.")],
    local: Annotated[str | None, typer.Argument(metavar="LOCAL", help="Where to; - is stdout. [default: its name, here]")] = None,
    json: Json = False,
) -> None:
    """Copy a file, or a folder with all that is in it, from a machine to this computer.

    A file is there when it is whole, and not before; one that was there is replaced.

    Example: everforge machine files get first results.csv
    """
    from ...connection import machine_named
    from ...tables import print_json, size

    with machine_named(name) as machine:
        if local == "-":
            _to_stdout(machine, path)
            return
        done = _fetch(machine, path, _target(path, local))
    if json:
        print_json(done)
    else:
        print(f"{done['local']}: {done['files']} files" if "files" in done else f"{done['local']}: {size(done['size_bytes'])}")


def _target(path: str, local: str | None) -> Path:
    """Into a folder that is there, under its own name."""
    own = PurePosixPath(path).name
    if local is None or Path(local).is_dir():
        if own in ("", ".."):
            raise typer.BadParameter("say where to, for this one", param_hint="LOCAL")
        return Path(local or ".") / own
    return Path(local)


def _fetch(machine: Machine, path: str, target: Path) -> dict[str, Any]:
    from everforge.wire.errors import NotAFile

    from ...failures import local
    from ...progress import transfer

    with local(target):
        try:
            with transfer(path) as progress:
                return {"path": path, "local": str(target), "size_bytes": machine.files.download(path, target, progress=progress)}
        except NotAFile:
            with transfer(path) as progress:
                return {"path": path, "local": str(target), "files": machine.files.download_folder(path, target, progress=progress)}


def _to_stdout(machine: Machine, path: str) -> None:
    for chunk in machine.files.stream(path):
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison] - closed by whoever started us
            sys.stdout.buffer.write(chunk)
