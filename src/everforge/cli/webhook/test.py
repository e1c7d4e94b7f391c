"""`everforge webhook test`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import Json


def send_test(id: Annotated[str, typer.Argument(metavar="ID", help="The webhook.")], json: Json = False) -> None:
    """Send a webhook one event, now, and say what came of it.

    Example: everforge webhook test w7fk3q9xz2ma
    """
    from ..connection import connected
    from ..tables import print_json

    with connected() as server:
        server.webhooks.test(id)
    print_json({"delivered": True}) if json else print("delivered")
