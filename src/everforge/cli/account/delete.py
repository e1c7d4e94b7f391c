"""`everforge account delete`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import Json


def delete(name: Annotated[str, typer.Argument(metavar="NAME", help="The account.")], json: Json = False) -> None:
    """Delete an account that has no machines any more, and its tokens. For the server's owner.

    Example: everforge account delete ada
    """
    from ..connection import connected
    from ..tables import print_json

    with connected() as server:
        server.accounts.delete(name)
    print_json({"deleted": True}) if json else print(f"deleted {name}")
