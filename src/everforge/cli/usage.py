"""`everforge usage`."""

from __future__ import annotations

from typing import Any

from .options import Json


def usage(json: Json = False) -> None:
    """What the account's machines use, and what it may have at most. How many there are, what they ran, the disk they take.

    Example: everforge usage
    """
    from dataclasses import asdict

    from .connection import connected
    from .tables import print_fields, print_json, size

    with connected() as server:
        found: dict[str, Any] = asdict(server.usage())
    if json:
        print_json(found)
        return
    found["disk_bytes"] = f"{found['disk_bytes']} ({size(found['disk_bytes'])})"
    quota: dict[str, Any] = found.pop("quota") or {}
    print_fields([*found.items(), *((f"quota: {name}", value or "no limit") for name, value in quota.items())])
