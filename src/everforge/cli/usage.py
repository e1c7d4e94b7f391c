"""`everforge usage`."""

from __future__ import annotations

from .options import Json


def usage(json: Json = False) -> None:
    """What the account's machines use. How many there are, what they ran, the disk they take.

    Example: everforge usage
    """
    from dataclasses import asdict

    from .connection import connected
    from .tables import print_fields, print_json, size

    with connected() as server:
        found = asdict(server.usage())
    if json:
        print_json(found)
        return
    found["disk_bytes"] = f"{found['disk_bytes']} ({size(found['disk_bytes'])})"
    print_fields(found.items())
