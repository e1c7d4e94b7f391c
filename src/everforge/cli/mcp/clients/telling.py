"""What was done to a client's file, for people and for programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...failures import say
from .changes import Plan

_SENTENCES = {
    "added": '"{name}" was added to {file}',
    "updated": '"{name}" was brought up to date in {file}',
    "unchanged": '"{name}" is in {file} already, as it should be: nothing was changed',
    "removed": '"{name}" was taken out of {file}',
    "absent": 'there is no "{name}" in {file}: nothing was changed',
}


def told(plan: Plan, backup: Path | None, notes: list[str]) -> dict[str, Any]:
    changed = plan.change in ("added", "updated", "removed")
    return {
        "client": plan.client.name,
        "name": plan.name,
        "file": str(plan.found.path),
        "change": plan.change,
        "deleted": plan.change == "removed" and plan.data is None,  # the file, which had nothing else in it
        "backup": None if backup is None else str(backup),
        "next": plan.client.next if changed else None,
        "notes": notes,
    }


def words(done: dict[str, Any]) -> None:
    """What was done is the answer; what is to be heeded goes to stderr."""
    from .catalogue import CLIENTS

    kept = ", and the file with it, which held nothing else" if done["deleted"] else ""
    kept += "" if done["backup"] is None else f"; the file as it was is {done['backup']}"
    print(f"{CLIENTS[done['client']].title}: {_SENTENCES[done['change']].format(**done)}{kept}", flush=True)
    for note in [*done["notes"], *([f"next: {done['next']}"] if done["next"] else [])]:
        say(f"everforge: {note}")
