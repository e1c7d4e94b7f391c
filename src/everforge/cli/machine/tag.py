"""`everforge machine tag`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..options import Json, Name, pairs

if TYPE_CHECKING:
    from everforge import Everforge


def tag(
    name: Name,
    tags: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Tags to set; the others stay.")] = None,
    remove: Annotated[list[str] | None, typer.Option(metavar="KEY", help="A tag to take away; may be given several times.")] = None,
    json: Json = False,
) -> None:
    """Set and take away tags, and show those that the machine then has.

    Example: everforge machine tag first team=red --remove draft
    """
    from ..connection import connected, suggesting
    from ..tables import print_json, print_rows

    wanted = pairs(tags, "KEY=VALUE") or {}
    with connected() as server, suggesting(name):
        machine = server.machine(name)
        found = machine.info().tags
        if remove:
            _check_is_kept_by_no_token(server, name, remove)
        changed = {key: value for key, value in {**found, **wanted}.items() if key not in (remove or [])}
        if changed != found:
            found = machine.update(tags=changed).tags
    print_json({"tags": found}) if json else print_rows(("KEY", "VALUE"), sorted(found.items()))


def _check_is_kept_by_no_token(server: Everforge, name: str, remove: list[str]) -> None:
    """A token for machines with a tag cannot take that one away: the server would put it back, and say nothing. Raises Forbidden."""
    from everforge.wire.errors import Forbidden

    token = server.account().token
    kept = [f"{key}={value}" for key, value in (token.tags if token else {}).items() if key in remove]
    if kept:
        raise Forbidden(f"this token is for machines with {kept[0]} alone, and {name} stays one of them: take a token that is for the whole account")
