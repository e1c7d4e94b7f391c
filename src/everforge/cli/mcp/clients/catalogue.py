"""The clients there are: which file, which format, and what an entry of it looks like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from . import jsonedits, places, yamledits
from .formats import Format
from .places import Surroundings

KIND = "stdio"  # what `type` says of a server that the client starts itself; without one it is the same
OTHERS = ("url", "serverUrl", "httpUrl", "uri", "settings")  # by these an entry is of another kind than ours
TIMEOUT_SECONDS = 300  # what Goose gives a tool when nobody says otherwise; here it must be said


@dataclass(frozen=True)
class Client:
    name: str  # on our command line
    title: str
    file: Callable[[Surroundings], PurePath]
    section: str
    next: str  # what to do when it is written
    format: Format = jsonedits
    kind: str | None = None  # what `type` says, where it must
    command: str = "command"
    env: str = "env"
    project: str | None = None  # a file in the project's folder that it reads, too
    programs: Sequence[str] = ()  # how it is called where one can ask for it
    strict: bool = False  # it does not read comments
    starting: Callable[[str], Mapping[str, object]] = field(default=lambda _: {})  # what a new entry has besides, by its name

    def fields(self, command: Sequence[str], env: Mapping[str, str]) -> dict[str, object]:
        """Of an entry that starts this command."""
        made: dict[str, object] = {} if self.kind is None else {"type": self.kind}
        made |= {self.command: command[0], "args": list(command[1:])}
        return {**made, self.env: dict(env)} if env else made


def _goose_entry(name: str) -> dict[str, object]:
    """Whoever uses Goose switches extensions on and off there: that is not ours to set a second time."""
    return {
        "name": name, "description": "Python machines that never forget", "enabled": True, "bundled": None, "timeout": TIMEOUT_SECONDS,
        "envs": {}, "env_keys": [],
    }  # fmt: skip


CLIENTS = {
    client.name: client
    for client in (
        Client(
            "claude-desktop", "Claude Desktop", places.claude_desktop, "mcpServers", "quit Claude Desktop and start it again",
            programs=("claude-desktop",), strict=True,
        ),
        Client(
            "claude-code", "Claude Code", places.claude_code, "mcpServers", "start Claude Code anew; `/mcp` in it shows whether it is there",
            kind=KIND, project=".mcp.json", programs=("claude",), strict=True,
        ),
        Client(
            "goose", "Goose", places.goose, "extensions", "start a new session of Goose",
            yamledits, kind=KIND, command="cmd", env="envs", programs=("goose",), starting=_goose_entry,
        ),
        Client(
            "windsurf", "Windsurf", places.windsurf, "mcpServers", "refresh the MCP servers in Windsurf, or restart it",
            programs=("windsurf",), strict=True,
        ),
        Client(
            "cursor", "Cursor", places.cursor, "mcpServers", "restart Cursor, and see in its settings that the server is switched on",
            project=".cursor/mcp.json", programs=("cursor",),
        ),
        Client(
            "vscode", "VS Code", places.vscode, "servers", "start the server in VS Code: `MCP: List Servers` in its command palette",
            kind=KIND, project=".vscode/mcp.json", programs=("code",),
        ),
        Client(
            "zed", "Zed", places.zed, "context_servers", "look into the settings of Zed's agent panel: it is there at once",
            programs=("zed", "zeditor"),
        ),
    )
}  # fmt: skip
