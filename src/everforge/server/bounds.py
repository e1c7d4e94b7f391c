"""What a request's fields may hold, in the words of JSON Schema: for the OpenAPI document, from the same settings that requests are checked by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from everforge.accounts.quotas import MOST
from everforge.accounts.requests import EMAIL_LENGTH_MAX, TOKEN_NAME_LENGTH_MAX
from everforge.egress.doors import LOG_LIMIT_MAX
from everforge.machines.requests import FUNCTION_LENGTH_MAX, FUNCTIONS_MAX, KEY_LENGTH_MAX
from everforge.machines.settings import MachineSettings
from everforge.store.quotas import Quota
from everforge.wire.ids import NAME_LENGTH_MAX

from .settings import ServerSettings

QUOTA_FIELDS = tuple(f.name for f in fields(Quota))
Bounds = Mapping[str, Mapping[str, Any]]
POSITION_MAX = 10**17  # of a tape; and of what can be asked for by number
MACHINE_NAME = {"type": "string", "pattern": "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", "maxLength": NAME_LENGTH_MAX, "example": "c0-k3f8q2mz7xwa"}
SNAPSHOT_NAME = {"pattern": "^[A-Za-z0-9][A-Za-z0-9 ._-]*$", "maxLength": 100}
ACCOUNT_NAME = {"pattern": "^[a-zA-Z0-9][a-zA-Z0-9_-]{2,15}$"}
IDEMPOTENCY_KEY = {
    "type": "string",
    "minLength": 1,
    "maxLength": KEY_LENGTH_MAX,
    "pattern": "^[!-~]([ -~]*[!-~])?$",
}  # HTTP takes spaces away at both ends
NUMBER = {"type": "integer", "minimum": 0, "maximum": POSITION_MAX}
PATH_PARAMETERS: Bounds = {
    "name": MACHINE_NAME,
    "seq": NUMBER,
    "call": NUMBER,
    "snapshot": {"type": "string", "minLength": 1, **SNAPSHOT_NAME},
    "account": {"type": "string", **ACCOUNT_NAME},
}


def bounds(server: ServerSettings, machines: MachineSettings) -> Bounds:
    """By the name of a field, or of a type and its field where several mean different things by one name."""
    m = machines
    tags = {"maxProperties": m.tags_max, "propertyNames": {"minLength": 1}}
    page = {"minimum": 1, "maximum": server.list_max}
    return {
        "account_name": ACCOUNT_NAME,
        "code": {"maxLength": m.code_bytes_max},
        "count": {"minimum": 1, "maximum": m.forks_max},
        "cpus": {"minimum": 0.05, "maximum": m.cpus_max},
        "cursor": {"minimum": 0},
        "disk_mb": {"minimum": 1, "maximum": m.disk_classes_mb[-1]},
        "email": {"format": "email", "maxLength": EMAIL_LENGTH_MAX},
        "env": {"propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}},
        "expires_at": {"format": "date-time"},
        "functions": {"maxItems": FUNCTIONS_MAX, "items": {"type": "string", "minLength": 1, "maxLength": FUNCTION_LENGTH_MAX}},
        "idle_seconds": {"minimum": 0.01, "maximum": m.idle_seconds_max},
        "image": {"minLength": 1, "maxLength": 200},
        "limit": page,
        "memory_mb": {"minimum": m.memory_mb_min, "maximum": m.memory_mb_max},
        "names": {"minItems": 1, "maxItems": m.forks_max, "uniqueItems": True, "items": MACHINE_NAME},
        "processes": {"minimum": 4, "maximum": m.processes_max},
        "scopes": {"minItems": 1},
        "tags": tags,
        "timeout_seconds": {"minimum": 0.001, "maximum": m.timeout_seconds_max},
        "AttemptsQuery.before": NUMBER,
        "AttemptsQuery.limit": {"minimum": 1, "maximum": LOG_LIMIT_MAX},
        "FilesQuery.limit": {"minimum": 1, "maximum": server.list_machines_max},
        "InstructionsQuery.after": {"minimum": -1, "maximum": POSITION_MAX},
        "ListMachines.limit": {"minimum": 1, "maximum": server.list_machines_max},
        "MachineChange.expires_at": {"description": "A time, or `never`."},
        "MachinesQuery.limit": {"minimum": 1, "maximum": server.list_machines_max},
        "MachinesQuery.tag": {"items": {"type": "string", "pattern": "^[^=]+="}},
        **{f"QuotaChange.{name}": {"minimum": -1, "maximum": MOST} for name in QUOTA_FIELDS},
        "NewMachine.name": MACHINE_NAME,
        "NewSnapshot.name": SNAPSHOT_NAME,
        "NewToken.name": {"minLength": 1, "maxLength": TOKEN_NAME_LENGTH_MAX},
        "TapeQuery.after": {"minimum": -1, "maximum": POSITION_MAX},
        "TapeQuery.instruction": NUMBER,
        "TapeQuery.limit": {"minimum": 1, "maximum": server.tape_entries_max},
    }


def apply(bounds: Bounds, owner: str, properties: dict[str, Any]) -> None:
    """To the schemas of a type's fields, in place; null stays as free as it is."""
    for name, schema in properties.items():
        found = bounds.get(f"{owner}.{name}", bounds.get(name, {}))
        for branch in schema.get("anyOf", [schema]):
            if branch.get("type") != "null" and "$ref" not in branch:
                branch.update(found)
