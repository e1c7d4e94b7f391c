"""`everforge doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from .checks import Row


def doctor(json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """Can machines run here? Each part is tried live; what is missing is named, with how to get it.

    The exit code is 0 when machines can run and 1 when they cannot.

    Example: everforge doctor
    """
    from .checks import all_checks
    from .progress import quiet_progress

    with quiet_progress() as progress:
        rows = list(all_checks(progress))
    fit = all(row.status != "fail" for row in rows)
    if json:
        from dataclasses import asdict
        from json import dumps

        print(dumps({"machines_can_run": fit, "checks": [asdict(row) for row in rows]}, indent=1))
    else:
        _print(rows)
        print("Machines can run here." if fit else "Machines cannot run here yet: see what failed above.")
    raise typer.Exit(0 if fit else 1)


def _print(rows: list[Row]) -> None:
    import sys

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    colours = {"ok": "green", "warn": "yellow", "fail": "red"}
    table = Table(box=None, show_header=False, pad_edge=False)
    for row in rows:
        table.add_row(Text(row.status, style=colours[row.status]), row.name, Text(row.sentence + (f"\n-> {row.fix}" if row.fix else "")))
    Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 200).print(table)
