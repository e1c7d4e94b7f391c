"""`everforge machine list`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import Json, Tags, among, pairs


def list_(
    tag: Tags = None,
    state: Annotated[str | None, typer.Option(help="Only those in this state: ready, busy, asleep, broken, ...")] = None,
    prefix: Annotated[str | None, typer.Option(help="Only those whose name begins so.")] = None,
    json: Json = False,
) -> None:
    """The account's machines, newest first. A table on a terminal, tab-separated lines elsewhere.

    The columns are name, state, created, last used, memory in MB, image and tags. Of several tags all must match.

    Example: everforge machine list --tag team=red --state asleep
    """
    from everforge.wire import api

    from .listing import list_machines

    among(api.State, "--state", [state])
    list_machines(pairs(tag, "--tag") or {}, state, prefix, json)
