"""`everforge webhook dead list`."""

from __future__ import annotations

from ...options import Json

HEADING = ("ID", "WEBHOOK", "EVENT", "CREATED", "TRIES", "ERROR")


def list_(json: Json = False) -> None:
    """What was tried so often that it is not tried any more, newest first.

    Example: everforge webhook dead list
    """
    from ...connection import connected
    from ...tables import moment, print_json, print_rows

    with connected() as server:
        found = server.webhooks.given_up()
    if json:
        print_json(found.deliveries)
        return
    print_rows(HEADING, ((d.id, d.webhook, d.event, moment(d.created_at), d.attempts, d.error) for d in found.deliveries))
    if found.let_go:
        from ...failures import say

        say(f"everforge: there was no room for {found.let_go} older ones since the server's start")
