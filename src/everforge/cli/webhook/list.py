"""`everforge webhook list`."""

from __future__ import annotations

from ..options import Json


def list_(json: Json = False) -> None:
    """The account's webhooks, without their secrets.

    Example: everforge webhook list
    """
    from ..connection import connected
    from ..tables import moment, print_json, print_rows

    with connected() as server:
        found = server.webhooks.list()
    if json:
        print_json(found)
        return
    print_rows(("ID", "URL", "EVENTS", "CREATED"), ((w.id, w.url, " ".join(w.events), moment(w.created_at)) for w in found))
