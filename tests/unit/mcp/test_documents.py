"""What docs/mcp.md and docs/mcp-install.md say of tools, limits and entries is what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path

from everforge.cli.mcp.clients.catalogue import CLIENTS
from everforge.cli.mcp.clients.places import Surroundings
from everforge.mcp import limits
from everforge.mcp.http import PATH, PORT
from everforge.mcp.resources import FILES_TEXT, MACHINES, TAPE_TEXT
from everforge.mcp.tools import tools_of

DOCS = Path(__file__).parents[3] / "docs"
SERVER, INSTALL = (DOCS / "mcp.md").read_text("utf-8"), (DOCS / "mcp-install.md").read_text("utf-8")

WINDOWS = {"USERPROFILE": r"C:\Users\ada", "APPDATA": r"C:\Users\ada\AppData\Roaming"}


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_the_table_of_tools_has_them_all() -> None:
    table = SERVER.split("## Tools")[1].split("Each says")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`([a-z_-]+)`", " ".join(rows))) == sorted(tools_of(sharing=True))


def test_the_limits_are_those_that_hold() -> None:
    text = " ".join(SERVER.split())
    for said in (
        f"for {limits.SESSION_IDLE_SECONDS / 60:.0f} minutes ends",
        f"at most {limits.SESSIONS_MAX}, of one token {limits.SESSIONS_OF_TOKEN_MAX}",
        f"at most {limits.MESSAGE_BYTES_MAX // 1024**2} MB and headers of {limits.HEAD_BYTES_MAX // 1024} KB",
        f"beyond {limits.OUTPUT_CHARACTERS:,} characters",
        f"at most {limits.PICTURES_MAX} in an answer",
        f"run for {limits.TIMEOUT_SECONDS:.0f} seconds",
        f"ready http://127.0.0.1:{PORT}{PATH}",
    ):
        assert said in text, said
    assert (limits.REQUEST_SECONDS, limits.PROGRESS_SECONDS, limits.HEARTBEAT_SECONDS, limits.TIMEOUT_SECONDS_MAX) == (60, 1 / 5, 5, 3600)
    assert (MACHINES in text, FILES_TEXT[:20] in text, TAPE_TEXT[:20] in text) == (True, True, True)


def test_the_entries_shown_are_those_that_are_written() -> None:
    [by_hand], [written] = blocks(SERVER, "json"), blocks(INSTALL, "json")
    assert json.loads(by_hand) == {"mcpServers": {"everforge": {"command": "everforge", "args": ["mcp", "serve"]}}}
    client = CLIENTS["cursor"]
    fields = client.fields(["/home/ada/.local/bin/everforge", "mcp", "serve"], {})
    assert client.format.put("", client.section, "everforge", fields, {}) == written


def test_the_table_of_files_names_each_clients_own() -> None:
    rows = {
        row[1].strip().strip("`"): [cell.strip().strip("`") for cell in row[2:6]]
        for row in (line.split("|") for line in INSTALL.splitlines())
        if len(row) > 5 and row[1].strip().startswith("`")
    }
    assert {*rows} == {*CLIENTS}
    for name, (linux, macos, windows, section) in rows.items():
        client = CLIENTS[name]
        assert client.section == section
        assert str(client.file(Surroundings("linux", "~"))) == linux
        assert macos in ("the same", str(client.file(Surroundings("macos", "~")))) or macos.endswith("/…")
        on_windows = str(client.file(Surroundings("windows", WINDOWS["USERPROFILE"], WINDOWS)))
        shown = re.sub(r"%(\w+)%", lambda found: WINDOWS[found[1]], windows)
        assert on_windows.startswith(shown.removesuffix("…")), name
        if macos == "the same":
            assert client.file(Surroundings("macos", "~")) == client.file(Surroundings("linux", "~"))
