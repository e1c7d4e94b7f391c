"""`everforge machine hibernate`."""

from __future__ import annotations

from ..options import Json, Name


def hibernate(name: Name, json: Json = False) -> None:
    """Send a machine to sleep now. Its memory goes to disk, and nothing of it runs any more; returns when it is asleep.

    Example: everforge machine hibernate first
    """
    from ..connection import machine_named
    from ..progress import waiting
    from ..tables import print_json

    with machine_named(name) as machine, waiting(f"saving {name}"):
        found = machine.hibernate()
    print_json(found) if json else print(f"{name} is {found.state}")
