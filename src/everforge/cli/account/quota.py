"""`everforge account quota`."""

from __future__ import annotations

from math import inf
from typing import Annotated, Any

import typer

from ..options import Json, whole


def _rate(value: float | None) -> float | None:
    if value is not None and not -1 <= value < inf:  # nan is not, either
        raise typer.BadParameter(f"{value:g} is no number of requests: 0 is no limit, -1 what the server's settings say")
    return value


def quota(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The account.")],
    machines: Annotated[int | None, typer.Option(callback=whole, min=-1, help="Machines, awake or asleep.")] = None,
    awake: Annotated[int | None, typer.Option(callback=whole, min=-1, help="Machines awake at once.")] = None,
    memory_mb: Annotated[int | None, typer.Option(callback=whole, min=-1, help="Limits of those that are awake, added up.")] = None,
    disk_mb: Annotated[int | None, typer.Option(callback=whole, min=-1, help="Its snapshots.")] = None,
    requests_per_second: Annotated[float | None, typer.Option(callback=_rate, help="Requests; what comes in two seconds may come at once.")] = None,
    egress_bytes_per_day: Annotated[int | None, typer.Option(callback=whole, min=-1, help="What its machines send and receive.")] = None,
    json: Json = False,
) -> None:
    """What an account may have at most; what is not given stays as it is. 0 is no limit, -1 what the server's settings say. For the server's owner.

    Example: everforge account quota ada --machines 20 --awake 5
    """
    from dataclasses import asdict

    from ..connection import connected
    from ..tables import print_fields, print_json

    given: dict[str, Any] = {"machines": machines, "awake": awake, "memory_mb": memory_mb, "disk_mb": disk_mb}
    with connected() as server:
        found = server.accounts.quota(name, **given, requests_per_second=requests_per_second, egress_bytes_per_day=egress_bytes_per_day)
    print_json(found) if json else print_fields((field, value or "no limit") for field, value in asdict(found).items())
