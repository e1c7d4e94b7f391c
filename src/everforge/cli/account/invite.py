"""`everforge account invite`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import ExpiresAt, Json


def invite(
    email: Annotated[str | None, typer.Option(help="Only for whoever has this address.")] = None,
    expires_at: ExpiresAt = None,
    json: Json = False,
) -> None:
    """Print an invitation, with which somebody can sign up once. For the server's owner.

    Example: everforge account invite --email ada@example.org
    """
    from ..connection import connected
    from ..tables import print_json

    with connected() as server:
        made = server.accounts.invite(email=email, expires_at=expires_at)
    print_json(made) if json else print(made.invitation)
