"""`everforge machine show`."""

from __future__ import annotations

from ..options import Json, Name


def show(name: Name, json: Json = False) -> None:
    """Everything about a machine. State, limits, tags, and where its tape is.

    Example: everforge machine show first
    """
    from dataclasses import asdict

    from ..connection import machine_named
    from ..tables import print_fields, print_json, size

    with machine_named(name) as machine:
        found = asdict(machine.info())
    if json:
        print_json(found)
        return
    for field in ("memory_bytes", "disk_bytes"):
        found[field] = f"{found[field]} ({size(found[field])})"
    print_fields((field, value) for field, value in found.items() if not field.startswith("has_pending"))
