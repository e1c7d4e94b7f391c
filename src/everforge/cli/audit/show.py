"""`everforge audit`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..options import Json

HEADING = ("NUMBER", "TIME", "ACCOUNT", "TOKEN", "ADDRESS", "ACTION", "MACHINE", "OUTCOME", "DETAIL")


def show(
    context: typer.Context,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Not before, as 2030-01-31T12:00:00Z.")] = None,
    machine: Annotated[str | None, typer.Option(metavar="NAME", help="Of this machine alone.")] = None,
    action: Annotated[str | None, typer.Option(help="As machine.create, or its first part alone, as machine.")] = None,
    account: Annotated[str | None, typer.Option(metavar="NAME", help="Of this account alone; for the server's owner.")] = None,
    last: Annotated[int, typer.Option(min=1, max=500, help="So many of the newest; all of them with --since.")] = 50,
    json: Json = False,
) -> None:
    """Who did what, and what came of it: every change, and every refusal for want of a good token. The owner of the server sees all accounts.

    Example: everforge audit --machine demo --since 2030-01-31T12:00:00Z
    """
    if context.invoked_subcommand is not None:
        return
    from ..connection import connected
    from ..tables import moment, print_json, print_rows

    wanted: dict[str, Any] = {"since": since, "machine": machine, "action": action, "account": account}
    with connected() as server:
        found = list(server.audit.entries(**wanted)) if since else server.audit.page(**wanted, limit=last, last=True).entries
    if json:
        print_json(found)
        return
    if not found:
        from ..failures import say

        say("everforge: no entries match")
    rows = ((e.number, moment(e.time), e.account_name, e.token, e.address, e.action, e.machine, e.outcome, e.detail) for e in found)
    print_rows(HEADING, rows)
