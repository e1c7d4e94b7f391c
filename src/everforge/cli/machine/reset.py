"""`everforge machine reset`."""

from __future__ import annotations

from ..options import Discard, Json, Name


def reset(name: Name, discard: Discard = False, json: Json = False) -> None:
    """Give a machine a fresh interpreter and fresh files. Its tape stays. Prints the snapshot that undoes it.

    Example: everforge machine reset first
    """
    from ..connection import machine_named
    from ..progress import waiting
    from ..tables import print_json

    with machine_named(name) as machine, waiting(f"resetting {name}"):
        undo = machine.reset(discard=discard)
    if json:
        print_json({"undo": undo})
    else:
        print(f"{name} is as new")
        if undo is not None:
            print(f"undo with: everforge machine rollback {name} {undo}")
        elif discard:
            print("what was before is not kept")
