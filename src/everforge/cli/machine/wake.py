"""`everforge machine wake`."""

from __future__ import annotations

from ..options import Json, Name


def wake(name: Name, json: Json = False) -> None:
    """Wake a sleeping machine ahead of time. Not needed before an instruction, which wakes it by itself.

    Example: everforge machine wake first
    """
    from ..connection import machine_named
    from ..progress import waiting
    from ..tables import print_json

    with machine_named(name) as machine, waiting(f"waking {name}"):
        found = machine.wake()
    print_json(found) if json else print(f"{name} is {found.state}")
