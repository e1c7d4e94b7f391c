"""What stands under our name already may be something else: then it is not mixed with ours, whichever client it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from everforge.cli.failures import LocalTrouble
from everforge.cli.mcp.clients import changes
from everforge.cli.mcp.clients.catalogue import CLIENTS
from everforge.cli.mcp.clients.choosing import NAMES
from everforge.cli.mcp.clients.files import Rights

OTHERS = {
    "http": ({"type": "http", "command": "x"}, 'it has "type"'),
    "sse": ({"type": "sse"}, 'it has "type"'),
    "no type": ({"type": None, "command": "x"}, 'it has "type"'),
    "address": ({"url": "https://machines.example.org/mcp"}, 'it has "url"'),
    "address and command": ({"command": "x", "serverUrl": "https://machines.example.org/mcp"}, 'it has "serverUrl"'),
    "text": ("hello", "it has no fields"),
    "number": (1, "it has no fields"),
    "switch": (False, "it has no fields"),
    "list": (["x"], "it has no fields"),
}
OURS: dict[str, Any] = {"nothing": None, "no fields": {}, "of the kind": {"type": "stdio", "command": "old"}, "of no kind": {"command": "old"}}


def lay(client: str, entry: Any, folder: Path) -> Path:
    path = folder / f"config.{'yaml' if client == 'goose' else 'json'}"
    path.write_text(json.dumps({CLIENTS[client].section: {"other": {"url": "x"}, "everforge": entry}}))  # which is YAML, too
    return path


def install(client: str, path: Path) -> changes.Plan:
    fields = CLIENTS[client].fields(["/bin/everforge", "mcp", "serve"], {})
    return changes.plan_install(CLIENTS[client], path, "everforge", fields, Rights())


@pytest.mark.parametrize("client", NAMES)
@pytest.mark.parametrize(("entry", "what"), OTHERS.values(), ids=OTHERS)
def test_an_entry_of_another_kind_is_left_alone_and_can_be_taken_away(client: str, entry: Any, what: str, tmp_path: Path) -> None:
    path = lay(client, entry, tmp_path)
    before = path.read_bytes()
    with pytest.raises(LocalTrouble) as caught:
        install(client, path)
    assert f'has an entry "everforge" of another kind ({what}): nothing was changed' in caught.value.message
    assert f"`everforge mcp uninstall {client} --name everforge`" in caught.value.message
    assert path.read_bytes() == before
    gone = changes.plan_uninstall(CLIENTS[client], path, "everforge")
    assert gone.data is not None
    assert list(json.loads(gone.data)[CLIENTS[client].section]) == ["other"]


@pytest.mark.parametrize("client", NAMES)
@pytest.mark.parametrize("entry", OURS.values(), ids=OURS)
def test_an_entry_of_our_kind_or_with_nothing_in_it_is_brought_up_to_date(client: str, entry: Any, tmp_path: Path) -> None:
    plan = install(client, lay(client, entry, tmp_path))
    assert (plan.change, b"/bin/everforge" in (plan.data or b"")) == ("updated", True)
