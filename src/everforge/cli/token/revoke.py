"""`everforge token revoke`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import Json


def revoke(id: Annotated[str, typer.Argument(metavar="ID", help="Its id, the part before the dot.")], json: Json = False) -> None:
    """End a token at once; connections that use it are closed.

    Example: everforge token revoke tok-1a2b3c
    """
    from ..connection import connected
    from ..tables import print_json

    with connected() as server:
        server.tokens.revoke(id)
    print_json({"revoked": id}) if json else print(f"revoked {id}")
