"""`everforge machine interrupt`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import Json, Name


def interrupt(
    name: Name,
    pending: Annotated[bool, typer.Option("--pending", help="Also cancel the instructions that wait behind it.")] = False,
    json: Json = False,
) -> None:
    """Interrupt the running instruction, whoever gave it, as Ctrl-C would. Its code may catch that; the machine's memory stays.

    A second time insists: what still runs is killed, and the machine's variables are lost.

    Example: everforge machine interrupt first --pending
    """
    from ..connection import machine_named
    from ..tables import print_json

    with machine_named(name) as machine:
        done = machine.interrupt(pending=pending)
    if json:
        print_json({"interrupted": done})
    else:
        print("interrupted" if done else "nothing was running")
