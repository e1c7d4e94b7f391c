"""What is to be done to a client's file, found out before anything is done; and then done."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from ...failures import LocalTrouble
from .catalogue import KIND, OTHERS, Client
from .files import UNCHANGED, Found, Meanwhile, Rights, backups, check_writable, delete, read, write
from .formats import BY_HAND
from .texts import Broken, Text, changed_letters, decode

TRIES_MAX = 3  # as often as another program may come in between
CHANGED_MAX = 4096  # letters of a file that may change their place when an entry comes in; a comment behind the last one does
PREDECESSOR = "forevervm"

Change = Literal["added", "updated", "unchanged", "removed", "absent"]


@dataclass(frozen=True)
class Plan:
    client: Client
    name: str
    found: Found
    change: Change
    data: bytes | None = None  # what the file is to be; without it, it goes
    rights: Rights = field(default_factory=Rights)
    notes: list[str] = field(default_factory=list[str])


def plan_install(client: Client, path: Path, name: str, fields: Mapping[str, object], rights: Rights) -> Plan:
    """An entry with these fields, added or brought up to date. LocalTrouble when the file is not to be touched."""
    found = read(path, client.format.BYTES_MAX)
    with _told(client, path):
        text = decode(found.data or b"")
        there = client.format.entries(text.text, client.section)
        _check_kind(client, path, name, there.get(name))
        made = text.saying(client.format.put(text.text, client.section, name, fields, client.starting(name)))
        data = made.encode()
    notes = [*_predecessor(client, name, there), *_liberties(client, text)]
    loose = found.status is not None and found.status.st_mode & ~rights.most & 0o777
    if made == text and found.data is not None and not loose:
        return Plan(client, name, found, "unchanged", notes=notes)
    check_writable(found)
    return Plan(client, name, found, "updated" if name in there else "added", data, rights, notes)


def plan_uninstall(client: Client, path: Path, name: str) -> Plan:
    found = read(path, client.format.BYTES_MAX)
    with _told(client, path):
        text = decode(found.data or b"")
        there = client.format.entries(text.text, client.section)
        if name not in there:
            return Plan(client, name, found, "absent")
        data = _without(client, found, text, name, there[name])
    check_writable(found)
    return Plan(client, name, found, "removed", data)


def carry_out(plan: Plan, again: Callable[[], Plan]) -> tuple[Plan, Path | None]:
    """What was done, and where the file as it was is kept. When another program was quicker, its file is read `again`."""
    for _ in range(TRIES_MAX):
        if plan.change in ("unchanged", "absent"):
            return plan, None
        try:
            return plan, delete(plan.found) if plan.data is None else write(plan.found, plan.data, plan.rights)
        except Meanwhile:
            plan = again()
    title = plan.client.title
    raise LocalTrouble(f"{plan.found.path} is being written by another program all the while: {UNCHANGED}; quit {title} and try again")


def is_here(client: Client, path: Path) -> bool:
    """Does it seem to be installed on this computer?"""
    known = path.parent if path.parent != Path.home() else path
    return path.exists() or known.exists() or any(shutil.which(program) for program in client.programs)


def _without(client: Client, found: Found, text: Text, name: str, entry: object) -> bytes | None:
    """What the file was before the entry came into it, as far as that can be told; else what is left of it. None when that is nothing."""
    if isinstance(entry, dict):
        fields = cast(dict[str, object], entry)
        for backup in backups(found.path):
            before = _before(client, backup, text, name, fields)
            if before is not None:
                return before
        if client.format.put("", client.section, name, fields, {}) == text.text and not text.marked:
            return None
    return text.saying(client.format.drop(text.text, client.section, name)).encode()


def _before(client: Client, backup: Path, text: Text, name: str, entry: Mapping[str, object]) -> bytes | None:
    """What a backup holds, if the entry put into it gives exactly the file as it is now."""
    with suppress(Broken, LocalTrouble):
        data = read(backup).data or b""
        old = decode(data)
        if changed_letters(old.text, text.text) <= CHANGED_MAX and name not in client.format.entries(old.text, client.section):
            made = client.format.put(old.text, client.section, name, entry, {})
            return data if old.saying(made) == text else None
    return None


def _check_kind(client: Client, path: Path, name: str, entry: object) -> None:
    """What is there under our name may be something else, that nobody wants to be mixed with ours."""
    if entry is None:  # not there, or nothing in it
        return
    fields = cast(dict[str, object], entry) if isinstance(entry, dict) else {}
    other = next((key for key in OTHERS if key in fields), None)
    if other is None and fields.get("type", KIND) != KIND:
        other = "type"
    if other is not None or not isinstance(entry, dict):
        what = "it has no fields" if other is None else f'it has "{other}"'
        raise LocalTrouble(
            f'{path} has an entry "{name}" of another kind ({what}): {UNCHANGED}; take it away with '
            f"`everforge mcp uninstall {client.name} --name {name}`, or give ours another name with --name"
        )


def _predecessor(client: Client, name: str, there: Mapping[str, object]) -> list[str]:
    if PREDECESSOR not in there or name == PREDECESSOR:
        return []
    return [f'it has an entry "{PREDECESSOR}", too, which stays; `everforge mcp uninstall {client.name} --name {PREDECESSOR}` takes it away']


def _liberties(client: Client, text: Text) -> list[str]:
    offset = client.format.liberty(text.text) if client.strict else None
    if offset is None:
        return []
    line = Broken(text.text, offset, "").line
    return [f"line {line} of it has a comment or a comma at an end, which {client.title} may refuse to read; it stays as it is"]


@contextmanager
def _told(client: Client, path: Path) -> Generator[None]:
    try:
        yield
    except Broken as e:
        if e.what == BY_HAND:
            raise LocalTrouble(f"{path}: {BY_HAND}: {UNCHANGED}; change it in an editor") from e
        where = f"at line {e.line}, column {e.column} ({e.what})"
        raise LocalTrouble(f"{path} is not {client.format.NAME} that can be read, {where}: {UNCHANGED}; mend it there and try again") from e
    except UnicodeEncodeError as e:
        raise LocalTrouble(f"the path of this program is not UTF-8, and cannot stand in {path}: {UNCHANGED}") from e
