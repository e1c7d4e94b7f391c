"""`everforge machine tag`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import Json, Name, pairs


def tag(
    name: Name,
    tags: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Tags to set; the others stay.")] = None,
    remove: Annotated[list[str] | None, typer.Option(metavar="KEY", help="A tag to take away; may be given several times.")] = None,
    json: Json = False,
) -> None:
    """Set and take away tags, and show those that the machine then has.

    Example: everforge machine tag first team=red --remove draft
    """
    from ..connection import machine_named
    from ..tables import print_json, print_rows

    wanted = pairs(tags, "KEY=VALUE") or {}
    with machine_named(name) as machine:
        found = machine.info().tags
        changed = {key: value for key, value in {**found, **wanted}.items() if key not in (remove or [])}
        if changed != found:
            found = machine.update(tags=changed).tags
    print_json({"tags": found}) if json else print_rows(("KEY", "VALUE"), sorted(found.items()))
