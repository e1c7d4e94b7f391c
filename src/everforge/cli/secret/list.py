"""`everforge secret list`."""

from __future__ import annotations

from ..options import Json

HEADING = ("NAME", "HOSTS", "HEADER", "CHANGED", "PLACEHOLDER")


def list_(json: Json = False) -> None:
    """The account's secrets, without their values.

    Example: everforge secret list
    """
    from ..connection import connected
    from ..tables import moment, print_json, print_rows

    with connected() as server:
        found = server.secrets.list()
    if json:
        print_json(found)
        return
    print_rows(HEADING, ((s.name, " ".join(s.hosts), s.header, moment(s.changed_at), s.placeholder) for s in found))
