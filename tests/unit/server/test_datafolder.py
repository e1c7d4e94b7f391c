from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from everforge.server.datafolder import DataFolder
from everforge.wire.errors import DataFolderBusy, InvalidInput, StoreDamaged


def test_a_second_server_is_kept_out_until_the_first_lets_go(tmp_path: Path) -> None:
    first, second = DataFolder(tmp_path), DataFolder(tmp_path)
    first.lock()
    with pytest.raises(DataFolderBusy):
        second.lock()
    first.unlock()
    second.lock()
    second.unlock()


@pytest.mark.parametrize("name", ["a,b", "a:b", "a\\b"])
def test_a_path_that_runsc_cannot_take_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="data folder"):
        DataFolder(tmp_path / name).lock()
    assert not (tmp_path / name).exists()


def test_a_server_that_comes_takes_the_caretakers_token_away(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.expect_caretaker("token")
    assert folder.awaits("token")
    assert not folder.awaits("another")
    folder.lock("token")
    assert folder.awaits("token"), "it was the caretaker itself"
    folder.unlock()
    folder.lock()
    assert not folder.awaits("token")
    folder.unlock()


def test_something_else_in_the_caretakers_place_is_a_clear_error(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.caretaker.mkdir()
    with pytest.raises(InvalidInput, match="caretaker"):
        folder.lock()
    folder.caretaker.rmdir()
    folder.lock()  # nothing was left locked
    folder.unlock()


def put(place: Path, kind: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.mkdir() if kind == "folder" else place.touch()


@pytest.mark.parametrize(("name", "kind"), [(".", "file"), ("snapshots", "file"), ("lock", "folder")])
def test_something_else_in_the_place_of_what_a_server_needs_is_named(tmp_path: Path, name: str, kind: str) -> None:
    folder = DataFolder(tmp_path / "data")
    put(folder.path / name, kind)
    with pytest.raises(InvalidInput, match=re.escape(str(folder.path / name))) as refusal:
        folder.lock()
    assert "give another" in refusal.value.message
    assert "Errno" not in refusal.value.message


def test_a_data_folder_that_cannot_be_written_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *_: object) -> int:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(InvalidInput, match=rf"{tmp_path} cannot be a data folder \({tmp_path}/lock: read-only file system\); give another one"):
        DataFolder(tmp_path).lock()


@pytest.mark.parametrize("name", ["everforge.db", "everforge.db-wal", "everforge.db-shm"])
def test_a_folder_in_the_place_of_the_database_is_named(tmp_path: Path, name: str) -> None:
    folder = DataFolder(tmp_path)
    folder.lock()
    put(tmp_path / name, "folder")
    with pytest.raises(StoreDamaged, match=f"{tmp_path / name} is not a file.*move it away"):
        folder.check_whole()
    folder.unlock()


@pytest.mark.parametrize("there", ["missing", "empty"])
def test_snapshots_of_machines_without_their_database_are_not_taken_for_a_new_server(tmp_path: Path, there: str) -> None:
    folder = DataFolder(tmp_path)
    folder.lock()
    folder.check_whole()  # a new one
    template, saved = folder.snapshots / "ptemplate", folder.snapshots / "psaved"
    for path, machine in ((template, "null"), (saved, '"m1"')):
        path.mkdir()
        (path / "manifest.json").write_text(f'{{\n "machine": {machine}\n}}')
    if there == "empty":
        folder.database.touch()
    with pytest.raises(StoreDamaged, match="1 snapshots"):
        folder.check_whole()
    folder.database.write_bytes(b"something")
    folder.check_whole()
    folder.unlock()
