"""`everforge account list`."""

from __future__ import annotations

from ..options import Json


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
    print_rows(("ACCOUNT", "EMAIL", "OWNER", "CREATED"), ((a.account, a.email, "yes" if a.owner else "no", moment(a.created_at)) for a in found))
