"""Settings of a server from wherever they are given: flags, then EVERFORGE_* in the environment, then everforge.toml, then the defaults."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from everforge.accounts.settings import AccountSettings
from everforge.accounts.settings import check as check_accounts
from everforge.audit.settings import AuditSettings
from everforge.audit.settings import check as check_audit
from everforge.egress.settings import EgressSettings
from everforge.egress.settings import check as check_egress
from everforge.machines.settings import MachineSettings
from everforge.machines.settings import check as check_machines
from everforge.webhooks.settings import WebhookSettings
from everforge.webhooks.settings import check as check_webhooks
from everforge.wire.errors import InvalidInput
from everforge.wire.sentences import show

from .settings import ServerSettings
from .settings import check as check_server

FILE = "everforge.toml"
PREFIX = "EVERFORGE_"
FILE_BYTES_MAX = 1024 * 1024
_PARTS = (ServerSettings, AccountSettings, MachineSettings, EgressSettings, AuditSettings, WebhookSettings)
_HINTS = {name: hint for part in _PARTS for name, hint in get_type_hints(part).items()}
SETTINGS = frozenset(_HINTS)

assert len(_HINTS) == sum(len(fields(part)) for part in _PARTS), "two settings have the same name"


@dataclass(frozen=True, slots=True)
class Given:
    """A setting, and who gave it: for people who wonder why it is what it is."""

    name: str
    value: Any
    source: str


@dataclass(frozen=True, slots=True)
class Configuration:
    server: ServerSettings
    accounts: AccountSettings
    machines: MachineSettings
    egress: EgressSettings
    audit: AuditSettings
    webhooks: WebhookSettings
    given: tuple[Given, ...]


def load(flags: Mapping[str, Any], data: Path, file: Path | None = None, environment: Mapping[str, str] | None = None) -> Configuration:
    """Raises InvalidInput that names the setting and where it came from."""
    environment = os.environ if environment is None else environment
    found: dict[str, Given] = {}
    for source, values in (
        ("default", {f.name: f.default for part in _PARTS for f in fields(part)}),
        (FILE if file is None else str(file), _from_file(data / FILE if file is None else file, needed=file is not None)),
        ("environment", {name: environment[PREFIX + name.upper()] for name in _HINTS if PREFIX + name.upper() in environment}),
        ("flag", {name: value for name, value in flags.items() if value is not None}),
    ):
        for name, value in values.items():
            found[name] = Given(name, value if source == "default" else _read(name, value, source), source)
    parts = [part(**{f.name: found[f.name].value for f in fields(part)}) for part in _PARTS]
    made = Configuration(*parts, given=tuple(found[name] for name in sorted(found)))  # pyright: ignore[reportArgumentType]
    check_server(made.server)
    check_accounts(made.accounts)
    check_machines(made.machines)
    check_egress(made.egress)
    check_audit(made.audit)
    check_webhooks(made.webhooks)
    return made


def _from_file(path: Path, *, needed: bool) -> dict[str, Any]:
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise InvalidInput(f"{path} is too large for settings")
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if needed:
            raise InvalidInput(f"there are no settings at {path}") from None
        return {}
    except OSError as e:
        raise InvalidInput(f"the settings at {path} cannot be read: {e.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise InvalidInput(f"the settings at {path} are not TOML: {e}") from None
    if unknown := sorted(set(found) - set(_HINTS)):
        raise InvalidInput(f"{path}: there is no setting {unknown[0]!r}; `everforge settings` lists what there is")
    return found


def _read(name: str, value: Any, source: str) -> Any:
    try:
        return _as(_HINTS[name], value)
    except (ValueError, TypeError):
        raise InvalidInput(f"the setting {name}, from {source}, must be {_kind(_HINTS[name])}, not {show(value)}") from None


def _as(hint: Any, value: Any) -> Any:
    """A value of the type, from text where it comes as that. Raises ValueError, TypeError."""
    if get_origin(hint) is tuple:
        parts = [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value
        return tuple(_as(get_args(hint)[0], part) for part in parts)
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ValueError(value)
        return value
    if get_origin(hint) in (Union, UnionType):
        return None if value in (None, "") else _as(get_args(hint)[0], value)
    if hint is bool:
        return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[str(value).lower()]
    if hint in (int, float) and not isinstance(value, bool):
        return hint(value.replace("_", "")) if isinstance(value, str) else _exact(hint, value)
    if hint is str and isinstance(value, str):
        return value
    raise TypeError(value)


def _exact(hint: type[int] | type[float], value: Any) -> Any:
    if type(value) not in (int, hint):
        raise TypeError(value)
    return hint(value)


def _kind(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(map(str, get_args(hint)))
    if get_origin(hint) is tuple:
        return "a list of texts" if get_args(hint)[0] is str else "a list of whole numbers"
    return {int: "a whole number", float: "a number", str: "text", bool: "true or false"}.get(hint, str(hint))
