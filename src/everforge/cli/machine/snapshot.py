"""`everforge machine snapshot`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ..options import Json, Name

if TYPE_CHECKING:
    from everforge.wire import api

HEADING = ("ID", "NAME", "CREATED", "AFTER", "REASON", "SIZE")


def snapshot(
    name: Name,
    label: Annotated[str | None, typer.Option("--name", help="What to call it; kept for as long as it has a name.")] = None,
    listing: Annotated[bool, typer.Option("--list", help="Show those there are instead.")] = False,
    gone: Annotated[str | None, typer.Option("--delete", metavar="SNAPSHOT", help="Delete this one, by id or name, instead.")] = None,
    json: Json = False,
) -> None:
    """Take, list or delete snapshots. One is taken, and its id printed, when nothing else is asked for.

    Example: everforge machine snapshot first --name before-cleaning
    """
    from ..connection import machine_named
    from ..progress import waiting
    from ..tables import print_json

    if sum((listing, gone is not None, label is not None)) > 1:
        raise typer.BadParameter("give one of --name, --list and --delete")
    with machine_named(name) as machine:
        if listing:
            found = machine.snapshots()
            print_json(found) if json else _print(found)
        elif gone is not None:
            machine.delete_snapshot(gone)
            print_json({"deleted": True}) if json else print(f"deleted {gone}")
        else:
            with waiting(f"saving {name}"):
                taken = machine.snapshot(label)
            print_json(taken) if json else print(taken.id)


def _print(snapshots: Sequence[api.Snapshot]) -> None:
    from ..tables import moment, print_rows, size

    def after(one: api.Snapshot) -> str:
        return "-" if one.instruction is None else f"instruction {one.instruction}"

    print_rows(HEADING, ((one.id, one.name, moment(one.created_at), after(one), one.reason, size(one.size_bytes)) for one in snapshots))
