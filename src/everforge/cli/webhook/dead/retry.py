"""`everforge webhook dead retry`."""

from __future__ import annotations

from typing import Annotated

import typer

from ...options import Json


def retry(id: Annotated[str | None, typer.Argument(metavar="ID", help="The delivery. [default: all of them]")] = None, json: Json = False) -> None:
    """Try what was given up anew, from the first try on.

    Example: everforge webhook dead retry
    """
    from ...connection import connected
    from ...tables import print_json

    with connected() as server:
        count = server.webhooks.retry(id)
    print_json({"deliveries": count}) if json else print(f"{count} tried anew")
