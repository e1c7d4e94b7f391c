"""`everforge token list`."""

from __future__ import annotations

from ..options import Json

HEADING = ("ID", "NAME", "SCOPES", "TAGS", "CREATED", "LAST USED", "EXPIRES")


def list_(json: Json = False) -> None:
    """The account's tokens, without their secrets.

    Example: everforge token list
    """
    from ..connection import connected
    from ..tables import moment, print_json, print_rows

    with connected() as server:
        found = server.tokens.list()
    if json:
        print_json(found)
        return
    rows = ((t.id, t.name, " ".join(t.scopes), t.tags, moment(t.created_at), moment(t.last_used_at), moment(t.expires_at)) for t in found)
    print_rows(HEADING, rows)
