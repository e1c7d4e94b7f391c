"""`everforge audit export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..options import Json


def export(file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it; - for standard output.")], json: Json = False) -> None:
    """Write the audit log, a line of JSON for each entry, and then that this is the end. The owner of the server gets all of it, others their own.

    Example: everforge audit export audit.ndjson
    """
    import sys
    from shutil import copyfileobj
    from tempfile import TemporaryFile

    from ..connection import connected
    from ..failures import local
    from ..tables import print_json
    from .files import write

    to_output = str(file) == "-"
    with connected() as server, local(file):
        whole = server.audit.head() is not None  # first: who is not let in leaves no empty file behind
        with TemporaryFile("w+", encoding="ascii") if to_output else open(file, "x", encoding="ascii") as output:
            count = write(server, output, whole=whole)
            if to_output:
                output.seek(0)
                copyfileobj(output, sys.stdout)
    if json and not to_output:
        print_json({"entries": count, "file": str(file)})
    elif not to_output:
        print(f"{count} entries in {file}")
