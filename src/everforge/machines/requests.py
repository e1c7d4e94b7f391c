"""What callers may ask for, checked before anything happens. Every refusal is an InvalidInput that names the field, the limit and its unit."""

from __future__ import annotations

import json
import keyword
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args

from everforge.store.base import Durability, History, MachineQuery
from everforge.wire.bodies import parse
from everforge.wire.errors import InvalidInput
from everforge.wire.ids import SNAPSHOT_ID, machine_name
from everforge.wire.messages import CALL_BYTES_MAX
from everforge.wire.sentences import show

from .settings import MachineSettings

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SNAPSHOT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}")
EXPIRES_AT_MAX = 253_402_300_799.0  # the end of the year 9999, which is as far as times on the wire go
KEY_LENGTH_MAX = 255
QUERY_LIMIT_MAX = 10_000
FUNCTIONS_MAX = 100
FUNCTION_LENGTH_MAX = 100


@dataclass(frozen=True, slots=True)
class SnapshotOf:
    """A kept point of a machine."""

    machine: str
    snapshot: str  # id or name


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMachine:
    """A request for a machine. None means the server's default."""

    name: str | None = None
    image: str | None = None
    memory_mb: int | None = None
    cpus: float | None = None
    disk_mb: int | None = None
    processes: int | None = None
    idle_seconds: float | None = None
    history: History = "idle"
    durability: Durability = "idle"
    tags: Mapping[str, str] | None = None
    metadata: Mapping[str, Any] | None = None
    env: Mapping[str, str] | None = None
    egress: str | None = None
    egress_allow: Sequence[str] | None = None
    expires_at: float | None = None  # seconds since 1970; it is deleted then
    from_snapshot: SnapshotOf | None = None  # it goes on from there, instead of beginning from its image


def whole(field: str, value: object, low: int, high: int, unit: str) -> int:
    if type(value) is not int or not low <= value <= high:
        raise InvalidInput(f"{field} must be a whole number from {low} to {high} {unit}, not {show(value)}")
    return value


def seconds(field: str, value: object, low: float, high: float) -> float:
    if not _is_number(value) or not low <= value <= high:  # pyright: ignore[reportOperatorIssue]
        raise InvalidInput(f"{field} must be from {low:g} to {high:g} seconds, not {show(value)}")
    return float(value)  # pyright: ignore[reportArgumentType]


def cpus(value: object, settings: MachineSettings) -> float:
    if not _is_number(value) or not 0.05 <= value <= settings.cpus_max:  # pyright: ignore[reportOperatorIssue]
        raise InvalidInput(f"cpus must be from 0.05 to {settings.cpus_max:g}, not {show(value)}")
    return float(value)  # pyright: ignore[reportArgumentType]


def _is_number(value: object) -> bool:
    """Whole numbers of any size compare as they are; only floats can be neither large nor small."""
    return type(value) is int or (type(value) is float and math.isfinite(value))


def disk_mb(value: object, settings: MachineSettings) -> int:
    """Rounded up to a size class: a disk's size is fixed when a template is made, and there is one template for each class."""
    classes = settings.disk_classes_mb
    wanted = whole("disk_mb", value, 1, classes[-1], "MB")
    return next(size for size in classes if size >= wanted)


def image(value: object) -> str:
    if not isinstance(value, str) or not value or len(value) > 200:
        raise InvalidInput(f"{show(value)} is not the name or digest of an image")
    return value


def tags(value: object, settings: MachineSettings) -> dict[str, str]:
    found = _text_mapping("tags", value)
    if len(found) > settings.tags_max:
        raise InvalidInput(f"a machine may have {settings.tags_max} tags, not {len(found)}")
    for key, text in found.items():
        if not key or max(len(key.encode()), len(text.encode())) > settings.tag_bytes_max:
            raise InvalidInput(f"tag {show(key)} is empty or longer than {settings.tag_bytes_max} bytes")
    return found


def env(value: object, settings: MachineSettings) -> dict[str, str]:
    found = _text_mapping("env", value)
    for key, text in found.items():
        if not _ENV_NAME.fullmatch(key) or "\0" in text:
            raise InvalidInput(f"{show(key)} is not the name of an environment variable, or its value contains NUL")
    if sum(len(k.encode()) + len(v.encode()) for k, v in found.items()) > settings.env_bytes_max:
        raise InvalidInput(f"env is larger than {settings.env_bytes_max} bytes")
    return found


def functions(value: object) -> list[str]:
    """Names of the client's functions, as code calls them."""
    names = list(cast("Sequence[object]", value)) if isinstance(value, Sequence) and not isinstance(value, str) else None
    if names is None or len(names) > FUNCTIONS_MAX:
        raise InvalidInput(f"functions must be a list of at most {FUNCTIONS_MAX} names")
    for name in names:
        if not isinstance(name, str) or len(name) > FUNCTION_LENGTH_MAX or not name.isidentifier() or keyword.iskeyword(name):
            raise InvalidInput(f"{show(name)} is not the name of a function")
    return list(dict.fromkeys(cast("list[str]", names)))


def answer(value: object, error: object) -> tuple[Any, str | None]:
    """Of a function of the client's program: what it returned, or the message of what it raised."""
    if error is not None and (not isinstance(error, str) or value is not None):
        raise InvalidInput("an answer has either a value or an error, which is text")
    try:
        text = json.dumps(value if error is None else error, allow_nan=False)
        if len(text) <= CALL_BYTES_MAX:
            found = parse(text.encode("ascii"))  # as the guest will read it
            return (found, None) if error is None else (None, found)
    except (TypeError, ValueError, RecursionError) as e:
        raise InvalidInput(f"value must be JSON: {e}") from None
    raise InvalidInput(f"an answer may have {CALL_BYTES_MAX} bytes as JSON, not {len(text)}; write long data to a file of the machine")


def metadata(value: object, settings: MachineSettings) -> dict[str, Any]:
    try:
        text = json.dumps(value, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as e:
        raise InvalidInput(f"metadata must be JSON: {e}") from None
    if not isinstance(value, Mapping) or len(text) > settings.metadata_bytes_max:
        raise InvalidInput(f"metadata must be a JSON object of at most {settings.metadata_bytes_max} bytes")
    return json.loads(text)


def query(value: MachineQuery) -> None:
    whole("limit", value.limit, 1, QUERY_LIMIT_MAX, "machines")
    _text_mapping("tags", value.tags)
    before: Any = value.before
    if before is not None and not (isinstance(before, tuple) and list(map(type, cast("tuple[Any, ...]", before))) == [float, str]):
        raise InvalidInput("before is the time and the id of the last machine seen")
    residences: Any = value.residences
    if isinstance(residences, str):
        raise InvalidInput("residences are a set of words, not one word")


def expires_at(value: object, now: float) -> float | None:
    if value is None:
        return None
    if not _is_number(value) or not now < value <= EXPIRES_AT_MAX:  # pyright: ignore[reportOperatorIssue]
        raise InvalidInput(f"expires_at must be a time in the future, not {show(value)}")
    return float(value)  # pyright: ignore[reportArgumentType]


def code(value: object, settings: MachineSettings) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"code must be text, not {type(value).__name__}")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as e:
        raise InvalidInput(f"code is not valid Unicode: character {e.start} is half of a surrogate pair") from None
    if size > settings.code_bytes_max:
        raise InvalidInput(f"code may have {settings.code_bytes_max} bytes, not {size}; write long data to a file")
    return value


def key(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= KEY_LENGTH_MAX or not value.isprintable():
        raise InvalidInput(f"an idempotency key has 1 to {KEY_LENGTH_MAX} printable characters")
    return value


def snapshot_of(value: object) -> SnapshotOf:
    if not isinstance(value, SnapshotOf):
        raise InvalidInput(f"from_snapshot names a machine and one of its snapshots, unlike {show(value)}")
    return SnapshotOf(machine_name(value.machine), snapshot(value.snapshot))


def snapshot_name(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not _SNAPSHOT_NAME.fullmatch(value) or SNAPSHOT_ID.fullmatch(value):
        raise InvalidInput(f"{show(value)} is not a snapshot name: use 1 to 100 letters, digits, spaces, '.', '_' and '-', and not the form of an id")
    return value


def snapshot(value: object) -> str:
    """The id or the name of one that may exist."""
    if not isinstance(value, str) or not _SNAPSHOT_NAME.fullmatch(value):
        raise InvalidInput(f"{show(value)} is neither the id nor the name of a snapshot")
    return value


def one_of(field: str, value: object, choices: Any) -> Any:
    if value not in get_args(choices):
        raise InvalidInput(f"{field} must be one of {', '.join(get_args(choices))}, not {show(value)}")
    return value


def _text_mapping(field: str, value: object) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(k, str) and isinstance(v, str) for k, v in value.items()):  # pyright: ignore[reportUnknownVariableType]
        raise InvalidInput(f"{field} must be a mapping of text to text")
    found: dict[str, str] = dict(value)  # pyright: ignore[reportUnknownArgumentType]
    try:
        "".join([*found, *found.values()]).encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{field} contains text that is not valid Unicode") from None
    return found
