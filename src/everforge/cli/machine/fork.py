"""`everforge machine fork`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import Json, Name, whole


def fork(
    name: Name,
    new: Annotated[list[str] | None, typer.Argument(metavar="NEW", help="Names of the copies; made up when none is given.")] = None,
    count: Annotated[int | None, typer.Option(callback=whole, min=1, help="How many copies, when they are not named.")] = None,
    json: Json = False,
) -> None:
    """Copy a living machine, memory and files. The names of the copies are printed; several cost one save.

    Example: everforge machine fork first second third
    """
    from ..connection import machine_named
    from ..progress import waiting
    from ..tables import print_json

    if new and count is not None and count != len(new):
        raise typer.BadParameter(f"{len(new)} names were given", param_hint="--count")
    with machine_named(name) as machine, waiting(f"copying {name}"):
        made = [copy.name for copy in machine.forks(None if new else count or 1, names=new or None)]
    print_json({"machine_names": made}) if json else print("\n".join(made))
