"""`everforge egress show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..names import complete_names
from ..options import Json

if TYPE_CHECKING:
    from everforge.wire import api


def show(
    name: Annotated[
        str | None, typer.Argument(help="A machine. [default: what new machines of the account get]", autocompletion=complete_names)
    ] = None,
    json: Json = False,
) -> None:
    """What a machine may reach, or what new machines may.

    Example: everforge egress show first
    """
    from ..connection import connected, machine_named

    if name is not None:
        with machine_named(name) as machine:
            told(machine.egress.show(), json=json)
        return
    with connected() as server:
        told(server.egress.show(), json=json)


def told(policy: api.EgressPolicy, *, json: bool) -> None:
    """Also for the commands that change it."""
    from ..tables import print_json

    if json:
        print_json(policy)
        return
    print(policy.egress)
    for rule in policy.egress_allow:
        print(f"  {rule}")
