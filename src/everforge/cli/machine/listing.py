"""What `everforge machine list` does, without what it takes to read a command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from ..tables import moment, on_terminal, print_rows

PAGE_MACHINES = 500
HEADING = ("NAME", "STATE", "CREATED", "LAST USED", "MEMORY MB", "IMAGE", "TAGS")
IMAGE_CHARACTERS = 12  # of a digest, as many as tell one from another


def read_words(words: Sequence[str]) -> dict[str, Any] | None:
    """Options in the commonest spelling; None for anything else, which is for typer to read or to refuse."""
    found: dict[str, Any] = {"tags": {}, "state": None, "prefix": None, "as_json": False}
    rest = iter(words)
    for word in rest:
        value = next(rest, "") if word in ("--tag", "--state", "--prefix") else ""
        key, equals, tag = value.partition("=")
        if word == "--json":
            found["as_json"] = True
        elif word == "--tag" and key and equals:
            found["tags"][key] = tag
        elif word in ("--state", "--prefix") and value and not value.startswith("-"):
            found[word.strip("-")] = value
        else:
            return None
    return found if found["state"] is None or _is_state(found["state"]) else None


def _is_state(word: str) -> bool:
    from typing import get_args

    from everforge.wire.api import State

    return word in get_args(State)


def list_machines(tags: dict[str, str], state: str | None, prefix: str | None, as_json: bool) -> None:
    machines = _machines(tags, state, prefix)
    if as_json:
        _print_json(machines)
        return
    rows = (_row(machine) for machine in machines)
    first = next(rows, None)
    if first is not None:
        print_rows(HEADING, (row for some in ((first,), rows) for row in some))
    elif on_terminal(sys.stdout):
        print("No machines; `everforge machine new` makes one." if not (tags or state or prefix) else "No such machines.")


def _row(machine: dict[str, Any]) -> list[Any]:
    image = str(machine.get("image") or "")[:IMAGE_CHARACTERS]
    times = [moment(machine.get("created_at")), moment(machine.get("last_used_at"))]
    return [machine["name"], machine.get("state"), *times, machine.get("memory_mb"), image, machine.get("tags") or {}]


def _print_json(machines: Iterator[dict[str, Any]]) -> None:
    """As they come: a server may have very many."""
    from json import dumps

    separator = "["
    for machine in machines:
        print(f"{separator}{dumps(machine)}", end="")
        separator = ",\n "
    print("]" if separator != "[" else "[]")


def _machines(tags: dict[str, str], state: str | None, prefix: str | None) -> Iterator[dict[str, Any]]:
    from ..quick import NotQuick, fetch

    given = [("tag", f"{key}={value}") for key, value in tags.items()] + [("state", state or ""), ("name_prefix", prefix or "")]
    after: str | None = None
    try:
        while True:
            page = fetch("/v1/machine/list", [pair for pair in (*given, ("limit", str(PAGE_MACHINES)), ("after", after or "")) if pair[1]])
            found, following = page["machines"], page["next"]
            if not all(isinstance(machine["name"], str) for machine in found):
                raise NotQuick("machines without names")
            yield from found
            after = following
            if after is None:
                return
    except (NotQuick, ValueError, KeyError, TypeError):
        pass  # the SDK goes on from there, or has a sentence for what is wrong
    yield from _patiently(tags, state, prefix, after)


def _patiently(tags: dict[str, str], state: Any, prefix: str | None, after: str | None) -> Iterator[dict[str, Any]]:
    from dataclasses import asdict

    from ..connection import connected

    with connected() as server:
        for machine in server.machines(tags=tags, state=state, prefix=prefix, after=after):
            yield asdict(machine)
