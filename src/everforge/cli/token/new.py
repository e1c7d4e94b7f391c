"""`everforge token new`."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from ..options import ExpiresAt, Json, among, pairs


def new(
    name: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    scope: Annotated[list[str] | None, typer.Option(help="read, exec or manage; may be given several times. [default: all]")] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Only for machines with this tag; may be given several times. [default: all]")
    ] = None,
    expires_at: ExpiresAt = None,
    json: Json = False,
) -> None:
    """Make a token and print it, this once.

    Example: everforge token new --name notebook --scope read --scope exec
    """
    from everforge.wire import api

    from ..connection import connected
    from ..tables import print_json

    among(api.Scope, "--scope", scope or [])
    with connected() as server:
        made = server.tokens.create(name, scopes=cast("list[api.Scope] | None", scope or None), expires_at=expires_at, tags=pairs(tag, "--tag"))
    print_json(made) if json else print(made.token)
