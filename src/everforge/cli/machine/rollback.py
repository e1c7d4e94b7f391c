"""`everforge machine rollback`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import Discard, Json, Name, whole


def rollback(
    name: Name,
    snapshot: Annotated[str | None, typer.Argument(metavar="SNAPSHOT", help="Id or name. [default: the newest]")] = None,
    instruction: Annotated[int | None, typer.Option(callback=whole, min=0, help="Go back to right after this instruction instead.")] = None,
    discard: Discard = False,
    json: Json = False,
) -> None:
    """Take a machine back to a snapshot, memory and files. Prints the snapshot that undoes it.

    Example: everforge machine rollback first --instruction 4
    """
    from ..connection import machine_named
    from ..progress import waiting
    from ..tables import print_json

    if snapshot is not None and instruction is not None:
        raise typer.BadParameter("give a snapshot or an instruction, not both", param_hint="--instruction")
    with machine_named(name) as machine, waiting(f"taking {name} back"):
        done = machine.rollback(snapshot if instruction is None else instruction, discard=discard)
    if json:
        print_json(done)
    else:
        print(f"{name} is back at {done.snapshot.name or done.snapshot.id}")
        if done.undo is not None:
            print(f"undo with: everforge machine rollback {name} {done.undo}")
        elif discard:
            print("what was before is not kept")
