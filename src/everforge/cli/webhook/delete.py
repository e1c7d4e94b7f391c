"""`everforge webhook delete`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import Json


def delete(id: Annotated[str, typer.Argument(metavar="ID", help="The webhook.")], json: Json = False) -> None:
    """Delete a webhook, and all that is on its way to it.

    Example: everforge webhook delete w7fk3q9xz2ma
    """
    from ..connection import connected
    from ..tables import print_json

    with connected() as server:
        server.webhooks.delete(id)
    print_json({"deleted": id}) if json else print(f"deleted {id}")
