"""`everforge mcp install` and `uninstall`, on what each client's file really looks like: what comes in, what stays, and what comes out again."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from everforge.cli import app
from everforge.cli.mcp.clients.catalogue import CLIENTS
from everforge.cli.mcp.clients.choosing import NAMES
from everforge.cli.mcp.clients.files import BACKUPS_MAX, backups
from everforge.cli.mcp.clients.places import surroundings
from kit.clientfiles import is_within, json_of

from .conftest import Command

FIXTURES = Path(__file__).parent / "mcp_fixtures"


@pytest.fixture(autouse=True, scope="module")
def commands_put_together_once() -> Generator[None]:
    """Not for each of these many calls: that is what takes the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "app", get_command(app.app))
        yield


def fixture(client: str) -> bytes:
    return next(FIXTURES.glob(f"{client}.*")).read_bytes()


def usual(client: str) -> Path:
    return Path(CLIENTS[client].file(surroundings()))


def lay(client: str, data: bytes) -> Path:
    path = usual(client)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def parse(path: Path) -> Any:
    """As a reader of somebody else's would: YAML by its library, JSON without comments and commas at ends."""
    text = path.read_text("utf-8-sig")
    return yaml.safe_load(text) if path.suffix == ".yaml" else json_of(text)


def section(client: str, path: Path) -> dict[str, Any]:
    return parse(path)[CLIENTS[client].section]


@pytest.mark.parametrize("client", NAMES)
def test_an_entry_comes_in_and_nothing_else_changes(client: str, stranger: Command) -> None:
    before = fixture(client)
    path = lay(client, before)
    old = parse(path)
    done = stranger("mcp", "install", client)
    assert done.code == 0, done.err
    assert f'{CLIENTS[client].title}: "everforge" was added to {path}' in done.out
    assert f"next: {CLIENTS[client].next}" in done.err
    new = parse(path)
    entry = new[CLIENTS[client].section].pop("everforge")
    assert entry[CLIENTS[client].command].endswith("everforge")
    assert Path(entry[CLIENTS[client].command]).is_absolute()
    assert entry["args"] == ["mcp", "serve"]
    assert "token" not in json.dumps(entry).lower()
    assert new == old
    assert is_within(before, path.read_bytes())
    assert [backup.read_bytes() for backup in backups(path)] == [before]


@pytest.mark.parametrize("client", NAMES)
@pytest.mark.parametrize("marked", [False, True], ids=["without a mark", "with a BOM"])
@pytest.mark.parametrize("crlf", [False, True], ids=["LF", "CRLF"])
def test_what_is_installed_and_uninstalled_again_leaves_every_byte_as_it_was(client: str, crlf: bool, marked: bool, stranger: Command) -> None:
    before = (b"\xef\xbb\xbf" if marked else b"") + (fixture(client).replace(b"\n", b"\r\n") if crlf else fixture(client))
    path = lay(client, before)
    assert stranger("mcp", "install", client, "--json").json["change"] == "added"
    after = path.read_bytes()
    assert after.startswith(b"\xef\xbb\xbf") == marked
    assert (b"\n" in after.replace(b"\r\n", b"")) is not crlf
    assert "everforge" in section(client, path)
    for backup in backups(path):  # they are a help, and not what this rests upon
        backup.unlink()
    done = stranger("mcp", "uninstall", client)
    assert (done.code, done.err.count("next: ")) == (0, 1), done.err
    assert path.read_bytes() == before


@pytest.mark.parametrize("client", NAMES)
def test_a_second_time_changes_nothing_and_says_so(client: str, stranger: Command) -> None:
    path = lay(client, fixture(client))
    assert stranger("mcp", "install", client).code == 0
    first, status = path.read_bytes(), path.stat()
    done = stranger("mcp", "install", client)
    assert (done.code, "as it should be: nothing was changed" in done.out) == (0, True)
    assert (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) == (first, status.st_mtime_ns, status.st_ino)
    assert len(backups(path)) == 1
    assert stranger("mcp", "install", client, "--json").json == {
        "client": client, "name": "everforge", "file": str(path), "change": "unchanged", "deleted": False, "backup": None, "next": None,
        "notes": stranger("mcp", "install", client, "--json").json["notes"],
    }  # fmt: skip


@pytest.mark.parametrize("client", NAMES)
@pytest.mark.parametrize("before", [b"", b"{}", b"{}\n", b"\n\n", b'{\n  "%s": {}\n}\n', b'{"%s": null}'])
def test_a_file_with_next_to_nothing_in_it_is_filled_and_restored(client: str, before: bytes, stranger: Command) -> None:
    before = before.replace(b"%s", CLIENTS[client].section.encode())
    path = lay(client, before)
    assert stranger("mcp", "install", client).code == 0
    assert list(section(client, path)) == ["everforge"]
    assert stranger("mcp", "uninstall", client).code == 0
    assert path.read_bytes() == before, "the backup says that it was like this"


@pytest.mark.parametrize("client", NAMES)
def test_a_client_that_is_not_here_gets_its_file_and_that_is_said(client: str, stranger: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = stranger("mcp", "install", client)
    assert done.code == 0, done.err
    assert f"{CLIENTS[client].title} was not found on this computer" in done.err
    path = usual(client)
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(section(client, path)) == ["everforge"]
    gone = stranger("mcp", "uninstall", client, "--json").json
    assert (gone["change"], gone["deleted"], path.exists()) == ("removed", True, False)
    again = stranger("mcp", "uninstall", client)
    assert (again.code, "nothing was changed" in again.out) == (0, True)
    assert not path.exists()


@pytest.mark.parametrize("client", NAMES)
def test_what_is_printed_is_the_entry_and_nothing_is_written(client: str, home: Path, stranger: Command) -> None:
    path = lay(client, fixture(client))
    done = stranger("mcp", "install", client, "--print", "--machine", "loom")
    assert (done.code, str(path) in done.err) == (0, True)
    sheet = home / f"pasted{path.suffix}"
    sheet.write_text(done.out)
    assert section(client, sheet)["everforge"]["args"] == ["mcp", "serve", "--machine", "loom"]
    assert path.read_bytes() == fixture(client)
    shown = stranger("mcp", "install", client, "--print", "--json").json
    assert (shown["file"], shown["section"]) == (str(path), CLIENTS[client].section)
    assert shown["entry"]["args"] == ["mcp", "serve"]


BROKEN = {".json": (b'{\n  "%s": {\n    "a": {}\n    "b": {}\n  }\n}\n', 4, 5), ".yaml": (b"%s:\n  a:\n    - x\n   b: [\n", 4, 4)}


@pytest.mark.parametrize("client", NAMES)
@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_a_broken_file_is_left_as_it_is_and_the_place_is_named(client: str, command: str, stranger: Command) -> None:
    text, line, column = BROKEN[usual(client).suffix]
    broken = text.replace(b"%s", CLIENTS[client].section.encode())
    path = lay(client, broken)
    done = stranger("mcp", command, client)
    assert (done.code, done.out) == (3, "")
    assert str(path) in done.sentence
    assert f"at line {line}, column {column} (" in done.sentence
    assert "nothing was changed" in done.sentence
    assert ("--print" in done.sentence) == (command == "install")
    assert json.loads(stranger("mcp", command, client, "--json").err)["code"] == "LocalTrouble"
    assert path.read_bytes() == broken
    assert list(path.parent.iterdir()) == [path] or client == "claude-code", "nothing beside it, either"
    assert backups(path) == []


@pytest.mark.parametrize("client", NAMES)
@pytest.mark.parametrize("wrong", [b"[]", b'"text"', b'{"%s": []}', b'{"%s": "text"}', b"\xff\xfe{\x00}\x00", b'{"a": "\xe9"}'])
def test_a_file_that_holds_something_else_is_left_as_it_is(client: str, wrong: bytes, stranger: Command) -> None:
    wrong = wrong.replace(b"%s", CLIENTS[client].section.encode())
    path = lay(client, wrong)
    done = stranger("mcp", "install", client)
    assert (done.code, "nothing was changed" in done.sentence, path.read_bytes()) == (3, True, wrong)


@pytest.mark.parametrize("client", NAMES)
def test_an_entry_of_before_is_brought_up_to_date_and_keeps_what_its_owner_added(client: str, stranger: Command) -> None:
    path = lay(client, fixture(client))
    assert stranger("mcp", "install", client, "--machine", "old").code == 0
    old = path.read_bytes()
    extra = b"    autoApprove: [run]  # mine\n    args:\n" if path.suffix == ".yaml" else b'"autoApprove": ["run"], /* mine */ "args": '
    place = b"    args:\n      - mcp" if path.suffix == ".yaml" else b'"args": ["mcp"'
    at = old.index(place)
    key = b"    args:\n" if path.suffix == ".yaml" else b'"args": '
    path.write_bytes(old[:at] + extra + old[at + len(key) :])
    done = stranger("mcp", "install", client, "--json").json
    assert (done["change"], Path(done["backup"]).read_bytes().count(b"mine")) == ("updated", 1)
    entry = section(client, path)["everforge"]
    assert (entry["args"], entry["autoApprove"]) == (["mcp", "serve"], ["run"])
    assert b"mine" in path.read_bytes()


def test_goose_users_who_switched_it_off_find_it_off(stranger: Command) -> None:
    path = lay("goose", fixture("goose"))
    assert stranger("mcp", "install", "goose").code == 0
    path.write_text(
        path.read_text()
        .replace("forget\n    enabled: true", "forget\n    enabled: false")
        .replace('forget"\n    enabled: true', 'forget"\n    enabled: false')
    )
    off = path.read_bytes()
    assert section("goose", path)["everforge"]["enabled"] is False
    assert stranger("mcp", "install", "goose", "--json").json["change"] == "unchanged"
    assert path.read_bytes() == off


def test_goose_gets_all_that_its_kind_of_extension_must_have(stranger: Command) -> None:
    assert stranger("mcp", "install", "goose").code == 0
    entry = section("goose", usual("goose"))["everforge"]
    assert {key: entry[key] for key in ("name", "type", "enabled", "timeout", "envs", "env_keys", "bundled")} == {
        "name": "everforge", "type": "stdio", "enabled": True, "timeout": 300, "envs": {}, "env_keys": [], "bundled": None,
    }  # fmt: skip


@pytest.mark.parametrize("client", ["cursor", "windsurf", "claude-code", "vscode", "zed"])
def test_an_entry_of_another_kind_under_our_name_is_not_mixed_with_ours(client: str, stranger: Command) -> None:
    key = {"windsurf": "serverUrl", "zed": "settings"}.get(client, "url")
    before = json.dumps({CLIENTS[client].section: {"everforge": {key: "https://machines.example.org/mcp"}}}).encode()
    path = lay(client, before)
    done = stranger("mcp", "install", client)
    assert (done.code, f'of another kind (it has "{key}")' in done.sentence, path.read_bytes()) == (3, True, before)
    assert stranger("mcp", "install", client, "--name", "everforge-2").code == 0
    assert set(section(client, path)) == {"everforge", "everforge-2"}


def test_an_entry_of_forevervm_stays_and_is_mentioned(stranger: Command) -> None:
    path = lay("claude-desktop", fixture("claude-desktop"))
    done = stranger("mcp", "install", "claude-desktop")
    assert "`everforge mcp uninstall claude-desktop --name forevervm`" in done.err
    assert set(section("claude-desktop", path)) == {"filesystem", "forevervm", "everforge"}
    assert stranger("mcp", "uninstall", "claude-desktop", "--name", "forevervm").code == 0
    assert set(section("claude-desktop", path)) == {"filesystem", "everforge"}


def test_what_a_strict_client_may_not_read_is_mentioned(stranger: Command) -> None:
    path = lay("windsurf", b'{\n  "mcpServers": {},\n  // mine\n}\n')
    done = stranger("mcp", "install", "windsurf")
    assert "line 2 of it has a comment or a comma at an end, which Windsurf may refuse" in done.err
    assert b"// mine" in path.read_bytes()
    lay("cursor", b'{\n  "mcpServers": {},\n  // mine\n}\n')
    assert "may refuse" not in stranger("mcp", "install", "cursor").err


def test_the_words_of_forevervms_npm_program_are_understood(stranger: Command) -> None:
    done = stranger("mcp", "install", "-c", "-w", "-g", "--json")
    assert [(one["client"], one["change"]) for one in done.json] == [("claude-desktop", "added"), ("goose", "added"), ("windsurf", "added")]
    assert stranger("mcp", "install", "--claude", "--json").json["client"] == "claude-desktop"
    assert stranger("mcp", "install", "--windsurf", "--json").json["client"] == "windsurf"
    assert stranger("mcp", "install", "--goose", "goose", "--json").json["client"] == "goose"
    gone = stranger("mcp", "uninstall", "--claude", "--windsurf", "--goose", "--json")
    assert {one["change"] for one in gone.json} == {"removed"}


def test_of_several_files_none_is_written_when_one_is_broken(stranger: Command) -> None:
    good = lay("cursor", fixture("cursor"))
    lay("zed", b"{")
    assert stranger("mcp", "install", "cursor", "zed").code == 3
    assert stranger("mcp", "uninstall", "cursor", "zed").code == 3
    assert good.read_bytes() == fixture("cursor")


@pytest.mark.parametrize("client", NAMES)
def test_only_some_clients_have_a_file_in_a_project(client: str, home: Path, stranger: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "loom").mkdir()
    monkeypatch.chdir(home / "loom")
    files = {"claude-code": ".mcp.json", "cursor": ".cursor/mcp.json", "vscode": ".vscode/mcp.json"}
    done = stranger("mcp", "install", client, "--project")
    if client not in files:
        assert (done.code, "claude-code, cursor, vscode" in done.sentence) == (2, True)
        return
    path = home / "loom" / files[client]
    assert (done.code, path.stat().st_mode & 0o777) == (0, 0o644)
    assert "whoever shares the project" in done.err
    assert not usual(client).exists()
    assert stranger("mcp", "install", client, "--project", "--with-token").code == 2
    assert stranger("mcp", "uninstall", client, "--project").code == 0
    assert not path.exists()


def test_another_file_can_be_given(home: Path, stranger: Command) -> None:
    path = home / "else where" / "mcp.json"
    done = stranger("mcp", "install", "cursor", "--config", str(path), "--json").json
    assert (done["file"], list(section("cursor", path))) == (str(path), ["everforge"])
    assert not usual("cursor").exists()
    assert stranger("mcp", "uninstall", "cursor", "--config", str(path)).code == 0
    assert stranger("mcp", "install", "cursor", "zed", "--config", str(path)).code == 2
    assert stranger("mcp", "install", "cursor", "--project", "--config", str(path)).code == 2


def test_what_is_for_the_server_is_handed_on(home: Path, stranger: Command) -> None:
    words = ["--machine", "loom", "--conversation", "tuesday", "--share", str(home)]
    assert stranger("mcp", "install", "zed", *words).code == 0
    assert section("zed", usual("zed"))["everforge"]["args"] == ["mcp", "serve", *words]


@pytest.mark.parametrize("words", [(), ("emacs",), ("cursor", "--name", "no spaces"), ("cursor", "--name", ""), ("cursor", "--name", "x" * 65)])
def test_wrong_usage_is_told_and_nothing_is_written(words: tuple[str, ...], home: Path, stranger: Command) -> None:
    done = stranger("mcp", "install", *words)
    assert (done.code, done.out) == (2, "")
    assert "see `everforge mcp install --help`" in done.sentence
    assert list(home.iterdir()) == []


def test_no_more_than_a_few_backups_are_kept_and_only_ours_go(stranger: Command) -> None:
    path = lay("cursor", fixture("cursor"))
    mine = path.with_name("mcp.json.everforge-backup-of-mine")
    mine.write_text("mine")
    for number in range(BACKUPS_MAX + 3):
        assert stranger("mcp", "install", "cursor", "--machine", f"m{number}").code == 0
    kept = backups(path)
    assert len(kept) == BACKUPS_MAX
    assert f"m{BACKUPS_MAX + 1}" in kept[0].read_text(), "the newest first"
    assert mine.read_text() == "mine"
    assert stranger("mcp", "uninstall", "cursor").code == 0
    assert path.read_bytes() == fixture("cursor")
