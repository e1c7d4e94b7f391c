"""A machine, a snapshot and an account as a server describes them, for transcripts."""

from __future__ import annotations

from typing import Any

from everforge.wire import api

TIME = "2030-01-31T12:00:00.000000Z"


def _fields(name: str) -> dict[str, Any]:
    return {
        "name": name, "state": "ready", "created_at": TIME, "last_used_at": TIME, "expires_at": None, "tags": {"team": "red"}, "metadata": {}, "memory_mb": 1024,
        "cpus": 2.0, "disk_mb": 4096, "processes": 200, "engine": "gvisor", "image": "default", "idle_seconds": 300.0, "history": "idle", "durability": "idle",
        "egress": "packages", "egress_allow": [], "next_instruction": 5, "pending_instructions": 0, "error": None, "running": True,
        "has_pending_instruction": False, "has_pending_instructions": False,
    }  # fmt: skip


def listed(name: str) -> api.ListedMachine:
    return api.ListedMachine(**_fields(name))


MACHINE = api.Machine(**_fields("m"), position=7, memory_bytes=100, disk_bytes=200, forked_from=None)
SNAPSHOT = api.Snapshot(id="p1", name="before", position=7, instruction=4, created_at=TIME, reason="asked", size_bytes=5)
ACCOUNT = api.Account(account="ada", email=None, owner=True, created_at=TIME)
