"""The files themselves: links, rights, owners, folders in the way, and others who write at the same moment."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from everforge.cli.failures import LocalTrouble
from everforge.cli.mcp.clients import changes, files
from everforge.cli.mcp.clients.catalogue import CLIENTS
from everforge.cli.mcp.clients.files import BYTES_MAX, Rights, backups

from .conftest import Command

ORDINARY = 65534
TEXT = b'{\n  "mcpServers": {\n    "a": {} // mine\n  }\n}\n'
CURSOR = CLIENTS["cursor"]
FIELDS = CURSOR.fields(["/bin/everforge", "mcp", "serve"], {})


@pytest.fixture
def path(home: Path) -> Path:
    found = home / ".cursor/mcp.json"
    found.parent.mkdir()
    found.write_bytes(TEXT)
    return found


@pytest.fixture
def folder() -> Generator[Path]:
    """Which another user can reach, too."""
    with tempfile.TemporaryDirectory(prefix="everforge-mcp-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


@contextmanager
def as_an_ordinary_user() -> Generator[None]:
    """For root nothing is read-only."""
    if os.geteuid() != 0:
        yield
        return
    os.setegid(ORDINARY)
    os.seteuid(ORDINARY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def put(path: Path, rights: Rights | None = None) -> changes.Plan:
    return changes.plan_install(CURSOR, path, "everforge", FIELDS, rights or Rights())


def install(path: Path, rights: Rights | None = None) -> tuple[changes.Plan, Path | None]:
    return changes.carry_out(put(path, rights), lambda: put(path, rights))


def beside(path: Path) -> list[str]:
    return sorted(one.name for one in path.parent.iterdir() if one != path)


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_a_read_only_file_is_left_as_it_is_even_by_root(command: str, path: Path, stranger: Command) -> None:
    if command == "uninstall":
        assert stranger("mcp", "install", "cursor").code == 0
    before, around = path.read_bytes(), beside(path)
    path.chmod(0o444)
    done = stranger("mcp", command, "cursor")
    assert (done.code, done.out) == (3, "")
    assert f"{path} is read-only: nothing was changed; make it writable (`chmod u+w`)" in done.sentence
    assert ("--print" in done.sentence) == (command == "install")
    assert (path.read_bytes(), path.stat().st_mode & 0o777, beside(path)) == (before, 0o444, around)


def test_a_file_that_is_as_it_should_be_may_be_read_only(path: Path, stranger: Command) -> None:
    assert stranger("mcp", "install", "cursor").code == 0
    path.chmod(0o444)
    assert stranger("mcp", "install", "cursor", "--json").json["change"] == "unchanged"


def test_an_ordinary_user_is_told_of_a_file_and_of_a_folder_that_are_not_theirs_to_write(folder: Path) -> None:
    path = folder / "mcp.json"
    path.write_bytes(TEXT)
    path.chmod(0o644)
    folder.chmod(0o555)
    try:
        if os.geteuid() == 0:
            with as_an_ordinary_user(), pytest.raises(LocalTrouble, match=r"mcp\.json is read-only: nothing was changed"):
                install(path)
            os.chown(path, ORDINARY, ORDINARY)
        with as_an_ordinary_user(), pytest.raises(LocalTrouble, match=f"the folder {folder} is read-only: nothing was changed"):
            install(path)
        with as_an_ordinary_user(), pytest.raises(LocalTrouble, match=f"the folder {folder} is read-only: nothing was changed"):
            install(folder / "below" / "this" / "mcp.json")
        path.chmod(0)
        with as_an_ordinary_user(), pytest.raises(LocalTrouble, match=r"mcp\.json: permission denied; nothing was changed"):
            install(path)
    finally:
        folder.chmod(0o755)
    assert (path.read_bytes() if os.geteuid() == 0 else TEXT, beside(path)) == (TEXT, [])


@pytest.mark.root
def test_a_file_keeps_its_owner_and_its_mode_and_so_does_the_backup_its_owner(folder: Path) -> None:
    path = folder / "mcp.json"
    path.write_bytes(TEXT)
    path.chmod(0o664)
    os.chown(path, 1234, 5678)
    _, backup = install(path)
    status = path.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (1234, 5678, 0o664)
    assert backup is not None
    assert (backup.stat().st_uid, backup.stat().st_mode & 0o777, backup.read_bytes()) == (1234, 0o600, TEXT)


@pytest.mark.root
def test_a_file_of_another_user_does_not_change_hands(folder: Path) -> None:
    path = folder / "mcp.json"
    path.write_bytes(TEXT)
    path.chmod(0o666)
    folder.chmod(0o777)
    with as_an_ordinary_user(), pytest.raises(LocalTrouble, match="operation not permitted; nothing was changed"):
        install(path)
    assert (path.read_bytes(), path.stat().st_uid, beside(path)) == (TEXT, 0, [])


def test_a_link_is_followed_and_stays_one(path: Path, home: Path, stranger: Command) -> None:
    real = home / "dotfiles" / "cursor.json"
    real.parent.mkdir()
    path.rename(real)
    path.symlink_to("../dotfiles/cursor.json")
    done = stranger("mcp", "install", "cursor", "--json").json
    assert (done["file"], path.is_symlink(), b"everforge" in real.read_bytes()) == (str(real), True, True)
    assert [backup.parent for backup in backups(real)] == [real.parent]
    assert stranger("mcp", "uninstall", "cursor").code == 0
    assert (path.is_symlink(), real.read_bytes()) == (True, TEXT)


def test_a_link_that_leads_nowhere_yet_is_followed_too(path: Path, home: Path, stranger: Command) -> None:
    path.unlink()
    path.symlink_to(home / "dotfiles" / "cursor.json")
    assert stranger("mcp", "install", "cursor").code == 0
    assert (path.is_symlink(), (home / "dotfiles" / "cursor.json").is_file()) == (True, True)


def test_a_link_that_leads_to_itself_is_told(path: Path, stranger: Command) -> None:
    path.unlink()
    path.symlink_to(path)
    done = stranger("mcp", "install", "cursor")
    assert (done.code, "nothing was changed" in done.sentence) == (3, True)


@pytest.mark.parametrize("what", ["folder", "fifo"])
def test_something_else_in_the_place_of_the_file_is_told(what: str, path: Path, stranger: Command) -> None:
    path.unlink()
    path.mkdir() if what == "folder" else os.mkfifo(path)
    for command in ("install", "uninstall"):
        done = stranger("mcp", command, "cursor")
        assert (done.code, f"{path} is not a file: nothing was changed" in done.sentence) == (3, True)


def test_a_file_in_the_place_of_the_folder_is_told(home: Path, stranger: Command) -> None:
    (home / ".cursor").write_text("a file")
    done = stranger("mcp", "install", "cursor")
    assert (done.code, "nothing was changed" in done.sentence) == (3, True)
    assert (home / ".cursor").read_text() == "a file"


def test_a_file_that_is_far_too_long_is_not_read_to_its_end(path: Path, stranger: Command) -> None:
    os.truncate(path, BYTES_MAX + 1)
    done = stranger("mcp", "install", "cursor")
    assert (done.code, "which is no configuration: nothing was changed" in done.sentence) == (3, True)


def test_what_another_program_wrote_in_between_is_read_again_and_kept(path: Path) -> None:
    plan = put(path)
    theirs = TEXT.replace(b'"a"', b'"theirs"')
    path.write_bytes(theirs)
    done, backup = changes.carry_out(plan, lambda: put(path))
    assert done.change == "added"
    assert b"theirs" in path.read_bytes()
    assert b"everforge" in path.read_bytes()
    assert backup is not None
    assert backup.read_bytes() == theirs


def test_whoever_writes_without_end_is_not_written_over(path: Path) -> None:
    tries = iter(range(1, 100))

    def again() -> changes.Plan:
        plan = put(path)
        path.write_bytes(TEXT + b" " * next(tries))
        return plan

    plan = again()
    with pytest.raises(LocalTrouble, match="is being written by another program all the while: nothing was changed; quit Cursor and try again"):
        changes.carry_out(plan, again)
    assert (next(tries), path.read_bytes().strip(), beside(path)) == (changes.TRIES_MAX + 2, TEXT.strip(), [])


def test_a_file_that_came_into_being_in_between_is_not_written_over(home: Path) -> None:
    path = home / ".cursor/mcp.json"
    plan = put(path)
    path.parent.mkdir()
    path.write_bytes(TEXT)
    changes.carry_out(plan, lambda: put(path))
    assert b"// mine" in path.read_bytes()


@pytest.mark.parametrize(("where", "what"), [(files, "_dress"), (os, "fsync"), (Path, "replace")], ids=["write", "fsync", "replace"])
def test_a_disk_that_fails_leaves_the_file_as_it_was_and_nothing_beside_it(
    where: Any, what: str, path: Path, stranger: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(where, what, fail)
        done = stranger("mcp", "install", "cursor")
    assert (done.code, "no space left on device; nothing was changed" in done.sentence) == (3, True)
    assert (path.read_bytes(), beside(path)) == (TEXT, [])


def test_two_backups_of_one_second_have_two_names(path: Path) -> None:
    install(path)
    path.write_bytes(TEXT + b"\n")
    install(path)
    path.write_bytes(TEXT + b"\n\n")
    install(path)
    assert [backup.read_bytes() for backup in backups(path)] == [TEXT + b"\n\n", TEXT + b"\n", TEXT]


def test_a_backup_is_the_newest_though_the_clock_was_set_back(path: Path) -> None:
    for number in range(files.BACKUPS_MAX):
        path.with_name(f"mcp.json.everforge-backup-29990101-00000{number}").write_bytes(b"of the future")
    _, backup = install(path)
    assert backup is not None
    assert (backup, backup.read_bytes(), len(backups(path))) == (backups(path)[0], TEXT, files.BACKUPS_MAX)


def test_a_backup_of_the_same_bytes_is_not_made_twice(path: Path) -> None:
    _, first = install(path)
    path.write_bytes(TEXT)
    _, second = install(path)
    assert (first, len(backups(path))) == (second, 1)


def test_with_a_token_in_it_the_file_is_its_owners_alone(path: Path) -> None:
    path.chmod(0o644)
    install(path, Rights(most=0o600))
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o664)
    done, _ = install(path, Rights(most=0o600))
    assert (done.change, path.stat().st_mode & 0o777) == ("updated", 0o600), "also when nothing else is to be done"
