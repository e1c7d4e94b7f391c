"""What each client's documentation says that an entry looks like, byte by byte. Nothing here is taken from the catalogue, which would agree with itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from everforge.cli.mcp.clients import programs

from .conftest import Command

FIXTURES = Path(__file__).parent / "mcp_fixtures"
PROGRAM = "/home/ada/.local/bin/everforge"
NEW = {
    "claude-desktop": """\
{
  "mcpServers": {
    "everforge": {
      "command": "/home/ada/.local/bin/everforge",
      "args": ["mcp", "serve"]
    }
  }
}
""",
    "claude-code": """\
{
  "mcpServers": {
    "everforge": {
      "type": "stdio",
      "command": "/home/ada/.local/bin/everforge",
      "args": ["mcp", "serve"]
    }
  }
}
""",
    "goose": """\
extensions:
  everforge:
    name: everforge
    description: "Python machines that never forget"
    enabled: true
    bundled: null
    timeout: 300
    envs: {}
    env_keys: []
    type: stdio
    cmd: /home/ada/.local/bin/everforge
    args:
      - mcp
      - serve
""",
    "windsurf": """\
{
  "mcpServers": {
    "everforge": {
      "command": "/home/ada/.local/bin/everforge",
      "args": ["mcp", "serve"]
    }
  }
}
""",
    "cursor": """\
{
  "mcpServers": {
    "everforge": {
      "command": "/home/ada/.local/bin/everforge",
      "args": ["mcp", "serve"]
    }
  }
}
""",
    "vscode": """\
{
  "servers": {
    "everforge": {
      "type": "stdio",
      "command": "/home/ada/.local/bin/everforge",
      "args": ["mcp", "serve"]
    }
  }
}
""",
    "zed": """\
{
  "context_servers": {
    "everforge": {
      "command": "/home/ada/.local/bin/everforge",
      "args": ["mcp", "serve"]
    }
  }
}
""",
}
# What an entry with variables has, and in whose place: Goose has a name of its own for them, the others share one.
ARGS = """\
      "args": ["mcp", "serve"]
"""
ARGS_AND_ENV = """\
      "args": ["mcp", "serve"],
      "env": {
        "EVERFORGE_URL": "https://machines.example.org",
        "EVERFORGE_TOKEN": "id.secret"
      }
"""
GOOSE_ENVS = """\
    envs:
      EVERFORGE_URL: "https://machines.example.org"
      EVERFORGE_TOKEN: id.secret
"""


@pytest.fixture(autouse=True)
def program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it lies is not what is asked here."""
    monkeypatch.setattr(programs, "own_program", lambda: [PROGRAM])


def suffix(client: str) -> str:
    return ".yaml" if client == "goose" else ".json"


@pytest.mark.parametrize("client", NEW)
def test_a_new_file_holds_what_the_client_reads(client: str, home: Path, stranger: Command) -> None:
    path = home / f"new{suffix(client)}"
    assert stranger("mcp", "install", client, "--config", str(path)).code == 0
    assert path.read_text() == NEW[client]


@pytest.mark.parametrize("client", NEW)
def test_a_file_with_other_entries_has_ours_behind_them(client: str, home: Path, stranger: Command) -> None:
    """As it should be afterwards it lies in mcp_fixtures/installed, under the same name."""
    before = FIXTURES / f"{client}{suffix(client)}"
    path = home / before.name
    path.write_bytes(before.read_bytes())
    assert stranger("mcp", "install", client, "--config", str(path)).code == 0
    assert path.read_bytes() == (FIXTURES / "installed" / before.name).read_bytes()


@pytest.mark.parametrize("client", NEW)
def test_variables_have_the_name_that_the_client_knows(client: str, home: Path, stranger: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERFORGE_URL", "https://machines.example.org")
    monkeypatch.setenv("EVERFORGE_TOKEN", "id.secret")
    path = home / f"new{suffix(client)}"
    assert stranger("mcp", "install", client, "--with-token", "--config", str(path)).code == 0
    old, new = ("    envs: {}\n", GOOSE_ENVS) if client == "goose" else (ARGS, ARGS_AND_ENV)
    assert path.read_text() == NEW[client].replace(old, new)


@pytest.mark.parametrize("client", NEW)
def test_what_is_printed_for_pasting_is_the_same(client: str, stranger: Command) -> None:
    assert stranger("mcp", "install", client, "--print").out == NEW[client]


def test_every_client_that_can_be_named_stands_here(stranger: Command) -> None:
    assert f"is none of {', '.join(NEW)}: see" in stranger("mcp", "install", "emacs").sentence
    assert sorted(path.stem for path in (FIXTURES / "installed").iterdir()) == sorted(NEW)
