"""Where clients keep their files on Linux, macOS and Windows; what they are to start, and with which variables."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from everforge.cli.mcp.clients.catalogue import CLIENTS
from everforge.cli.mcp.clients.choosing import NAMES, complete_clients
from everforge.cli.mcp.clients.places import Platform, Surroundings, surroundings
from everforge.cli.mcp.clients.programs import own_program
from everforge.client.config import Access, config_path, write_config

from .conftest import Command

LINUX = Surroundings("linux", "/home/ada")
MACOS = Surroundings("macos", "/Users/ada")
WINDOWS = Surroundings("windows", r"C:\Users\ada")
USUAL = {
    "claude-desktop": (
        "/home/ada/.config/Claude/claude_desktop_config.json",
        "/Users/ada/Library/Application Support/Claude/claude_desktop_config.json",
        r"C:\Users\ada\AppData\Roaming\Claude\claude_desktop_config.json",
    ),
    "claude-code": ("/home/ada/.claude.json", "/Users/ada/.claude.json", r"C:\Users\ada\.claude.json"),
    "goose": (
        "/home/ada/.config/goose/config.yaml",
        "/Users/ada/.config/goose/config.yaml",
        r"C:\Users\ada\AppData\Roaming\Block\goose\config\config.yaml",
    ),
    "windsurf": (
        "/home/ada/.codeium/windsurf/mcp_config.json",
        "/Users/ada/.codeium/windsurf/mcp_config.json",
        r"C:\Users\ada\.codeium\windsurf\mcp_config.json",
    ),
    "cursor": ("/home/ada/.cursor/mcp.json", "/Users/ada/.cursor/mcp.json", r"C:\Users\ada\.cursor\mcp.json"),
    "vscode": (
        "/home/ada/.config/Code/User/mcp.json",
        "/Users/ada/Library/Application Support/Code/User/mcp.json",
        r"C:\Users\ada\AppData\Roaming\Code\User\mcp.json",
    ),
    "zed": ("/home/ada/.config/zed/settings.json", "/Users/ada/.config/zed/settings.json", r"C:\Users\ada\AppData\Roaming\Zed\settings.json"),
}


@pytest.mark.parametrize("client", NAMES)
def test_each_client_has_its_file_on_each_platform(client: str) -> None:
    assert tuple(str(CLIENTS[client].file(here)) for here in (LINUX, MACOS, WINDOWS)) == USUAL[client]


def test_the_names_told_are_those_of_the_catalogue() -> None:
    assert tuple(CLIENTS) == NAMES
    assert complete_clients("c") == ["claude-desktop", "claude-code", "cursor"]


@pytest.mark.parametrize(
    ("client", "platform", "env", "wanted"),
    [
        ("goose", "linux", {"XDG_CONFIG_HOME": "/x"}, "/x/goose/config.yaml"),
        ("goose", "linux", {"XDG_CONFIG_HOME": "x"}, "/home/ada/.config/goose/config.yaml"),
        ("goose", "macos", {"GOOSE_PATH_ROOT": "/g"}, "/g/config/config.yaml"),
        ("zed", "linux", {"XDG_CONFIG_HOME": "/x"}, "/x/zed/settings.json"),
        ("zed", "macos", {"XDG_CONFIG_HOME": "/x"}, "/home/ada/.config/zed/settings.json"),
        ("vscode", "linux", {"XDG_CONFIG_HOME": "/x"}, "/x/Code/User/mcp.json"),
        ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": "/c"}, "/c/.claude.json"),
        ("zed", "windows", {"APPDATA": r"D:\Roaming"}, r"D:\Roaming\Zed\settings.json"),
    ],
)
def test_variables_of_the_client_are_heeded(client: str, platform: Platform, env: dict[str, str], wanted: str) -> None:
    assert str(CLIENTS[client].file(Surroundings(platform, "/home/ada", env))) == wanted


def test_claude_desktop_as_a_package_of_windows_has_a_folder_of_its_own() -> None:
    here = Surroundings("windows", r"C:\Users\ada", {}, ["Microsoft.Paint_8w", "Claude_pzs8sxrjxfjjc"])
    wanted = r"C:\Users\ada\AppData\Local\Packages\Claude_pzs8sxrjxfjjc\LocalCache\Roaming\Claude\claude_desktop_config.json"
    assert str(CLIENTS["claude-desktop"].file(here)) == wanted


def test_this_computer_is_asked_what_it_is(home: Path) -> None:
    assert (surroundings("linux").platform, surroundings("darwin").platform, surroundings("linux").home) == ("linux", "macos", str(home))
    assert surroundings("win32").packages == []


def test_the_program_is_the_one_that_was_called_by_a_path_that_holds_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bin/everforge", "bin/python", "other/python"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    link = tmp_path / "everforge"
    link.symlink_to(tmp_path / "bin/everforge")
    monkeypatch.chdir(tmp_path)
    assert own_program("./everforge", "/usr/bin/python3") == [str(link)], "a link stays: it outlives what it leads to"
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert own_program("everforge", "/usr/bin/python3") == [str(tmp_path / "bin/everforge")]
    assert own_program("/x/everforge/__main__.py", str(tmp_path / "bin/python")) == [str(tmp_path / "bin/everforge")]
    assert own_program("pytest", str(tmp_path / "other/python")) == [str(tmp_path / "other/python"), "-m", "everforge"]


def env_of_entry(home: Path) -> dict[str, str]:
    return json.loads((home / ".cursor/mcp.json").read_text())["mcpServers"]["everforge"].get("env", {})


def test_variables_of_the_shell_alone_are_told_of_and_written_only_when_that_is_asked(
    home: Path, stranger: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERFORGE_URL", "https://machines.example.org")
    monkeypatch.setenv("EVERFORGE_TOKEN", "id.secret")
    done = stranger("mcp", "install", "cursor")
    assert "(EVERFORGE_URL, EVERFORGE_TOKEN), which Cursor does not see: run `everforge login`" in done.err
    assert "secret" not in (home / ".cursor/mcp.json").read_text() + done.out + done.err
    assert os.environ["EVERFORGE_TOKEN"] == "id.secret"
    (home / ".cursor/mcp.json").chmod(0o644)
    done = stranger("mcp", "install", "cursor", "--with-token")
    assert (done.code, "secret" in done.out + done.err) == (0, False)
    assert env_of_entry(home) == {"EVERFORGE_URL": "https://machines.example.org", "EVERFORGE_TOKEN": "id.secret"}
    assert (home / ".cursor/mcp.json").stat().st_mode & 0o777 == 0o600


def test_after_a_login_nothing_needs_to_be_said_or_written(home: Path, stranger: Command) -> None:
    write_config(Access("https://machines.example.org", "id.secret"))
    assert config_path().is_file()
    notes = stranger("mcp", "install", "cursor", "--json").json["notes"]
    assert not [note for note in notes if "server" in note]
    assert env_of_entry(home) == {}


def test_without_a_server_that_is_said_and_with_a_token_asked_for_refused(home: Path, stranger: Command) -> None:
    assert "no server is known here yet" in stranger("mcp", "install", "cursor").err
    assert stranger("mcp", "install", "zed", "--with-token").code == 4
    assert not (home / "config/zed").exists()


def test_a_data_folder_elsewhere_than_usual_is_handed_on(home: Path, stranger: Command) -> None:
    (home / "data").mkdir()
    (home / "data/server.json").write_text(json.dumps({"url": "http://127.0.0.1:1"}))
    (home / "data/owner.token").write_text("id.secret")
    (home / "data/owner.token").chmod(0o600)
    assert stranger("mcp", "install", "cursor").code == 0
    assert env_of_entry(home) == {"EVERFORGE_DATA": str(home / "data")}
