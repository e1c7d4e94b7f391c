"""`everforge account new`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import Json


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")],
    email: Annotated[str | None, typer.Option(help="The address of whom it is for.")] = None,
    json: Json = False,
) -> None:
    """Make an account and print its token, this once. For the server's owner.

    Example: everforge account new ada --email ada@example.org
    """
    from ..connection import connected
    from ..tables import print_json

    with connected() as server:
        made = server.accounts.create(name, email=email)
    print_json(made) if json else print(made.token)
