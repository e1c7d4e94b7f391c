"""`everforge secret delete`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import Json


def delete(name: Annotated[str, typer.Argument(help="Its name.")], json: Json = False) -> None:
    """Delete a secret: its placeholder is put through as it is from now on.

    Example: everforge secret delete API_KEY
    """
    from ..connection import connected
    from ..tables import print_json

    with connected() as server:
        server.secrets.delete(name)
    print_json({"deleted": True}) if json else print(f"deleted {name}")
