"""`everforge egress log`."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from ..options import Json, Name

if TYPE_CHECKING:
    from everforge.wire import api

LIMIT_MAX = 1_000_000  # far more than any server keeps of one machine
HEADING = ("TIME", "VERDICT", "WHAT", "SENT", "RECEIVED", "WHY")


def log(
    name: Name,
    limit: Annotated[int, typer.Option(min=1, max=LIMIT_MAX, help="How many, the newest.")] = 50,
    refused: Annotated[bool, typer.Option("--refused", help="Only what was not let through.")] = False,
    json: Json = False,
) -> None:
    """What a machine has tried to reach, newest first, and what became of it.

    Example: everforge egress log first --refused
    """
    from ..connection import machine_named
    from ..tables import print_json, print_rows

    with machine_named(name) as machine:
        found = list(islice((a for a in machine.egress.log() if not refused or a.verdict == "refused"), limit))
    if json:
        print_json(found)
        return
    print_rows(HEADING, (_row(attempt) for attempt in found))


def _row(a: api.EgressAttempt) -> tuple[str, ...]:
    from ..tables import moment, size

    what = f"{a.method} {a.host}:{a.port}{a.path}"
    why = a.why or f"{a.allowed_by}{', with ' + ' '.join(a.secrets) if a.secrets else ''}"
    return moment(a.time), a.verdict, what, size(a.sent_bytes), size(a.received_bytes), why
