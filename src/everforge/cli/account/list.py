"""`everforge account list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..options import Json

if TYPE_CHECKING:
    from everforge.wire import api


def list_(json: Json = False) -> None:
    """All accounts of the server, for its owner.

    Example: everforge account list
    """
    from ..connection import connected
    from ..tables import moment, print_json, print_rows

    with connected() as server:
        found = server.accounts.list()
    if json:
        print_json(found)
        return
    rows = ((a.account, a.email, "yes" if a.owner else "no", moment(a.created_at), _limits(a.quota)) for a in found)
    print_rows(("ACCOUNT", "EMAIL", "OWNER", "CREATED", "QUOTA"), rows)


def _limits(quota: api.Quota | None) -> str:
    """Those that there are."""
    from dataclasses import asdict

    return " ".join(f"{name}={value}" for name, value in asdict(quota).items() if value) if quota else ""
