"""Files of this computer: only where a folder is shared, and only those below it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from everforge.mcp.share import source, target
from everforge.wire.errors import InvalidInput
from kit.mcpserving import data_of, text_of

from .conftest import connector


@pytest.fixture
def share(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "dangling").symlink_to(tmp_path / "nowhere")
    (folder / "way-out").symlink_to(tmp_path)
    return folder


async def test_files_are_copied_both_ways(user: Path, share: Path) -> None:
    (share / "in.txt").write_text("hello")
    async with connector("auto")(share=share) as client:
        assert {"upload_file", "download_file"} <= {tool.name for tool in (await client.list_tools()).tools}
        up = data_of(await client.call_tool("upload_file", {"local_path": "in.txt", "machine_path": "data/in.txt"}))
        assert up["size_bytes"] == 5
        down = data_of(await client.call_tool("download_file", {"machine_path": "data/in.txt", "local_path": "new/out.txt"}))
        assert down["size_bytes"] == 5
        assert (share / "new" / "out.txt").read_text() == "hello"
        kept = await client.call_tool("download_file", {"machine_path": "data/in.txt", "local_path": "new/out.txt"})
        assert "overwrite=true" in text_of(kept)
        await client.call_tool("write_file", {"path": "data/in.txt", "content": "changed"})
        data_of(await client.call_tool("download_file", {"machine_path": "data/in.txt", "local_path": "new/out.txt", "overwrite": True}))
        assert (share / "new" / "out.txt").read_text() == "changed"


async def test_nothing_outside_of_the_folder_is_touched(user: Path, share: Path, tmp_path: Path) -> None:
    async with connector("auto")(share=share) as client:
        await client.call_tool("write_file", {"path": "x", "content": "x"})
        for path in ("../secret", "link", "dangling", "way-out/secret", str(tmp_path / "secret"), ".", "", "a\0b"):
            up = await client.call_tool("upload_file", {"local_path": path, "machine_path": "stolen"})
            down = await client.call_tool("download_file", {"machine_path": "x", "local_path": path, "overwrite": True})
            assert text_of(up).startswith("InvalidInput: "), path
            assert text_of(down).startswith("InvalidInput: "), path
        assert (await client.call_tool("read_file", {"path": "stolen"})).is_error
    assert (tmp_path / "secret").read_text() == "secret"
    assert not (tmp_path / "nowhere").exists()


async def test_what_is_turned_elsewhere_after_it_was_looked_at_is_not_followed(user: Path, share: Path, tmp_path: Path) -> None:
    """As a program on this computer might do it, at the worst of moments."""
    (share / "folder").mkdir()
    (share / "folder" / "secret").write_text("harmless")
    (share / "file").write_text("harmless")

    def turn() -> None:
        shutil.rmtree(share / "folder")
        (share / "folder").symlink_to(tmp_path)
        (share / "file").unlink()
        (share / "file").symlink_to(tmp_path / "secret")

    with source(share, "folder/secret") as (_, way), source(share, "file") as (_, other), target(share, "folder/new", False) as (_, new):
        turn()
        assert (way.read_text(), other.read_text()) == ("harmless", "harmless")
        with pytest.raises(FileNotFoundError):  # the folder that it was has gone
            new.write_text("x")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("use", [source, lambda share, path: target(share, path, True)], ids=["source", "target"])
def test_what_is_turned_elsewhere_between_looking_and_opening_is_refused(
    use: Any, share: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (share / "folder").mkdir()
    (share / "folder" / "secret").write_text("harmless")
    looked = Path.is_file

    def turn(path: Path) -> bool:
        found = looked(path)
        shutil.rmtree(share / "folder")
        (share / "folder").symlink_to(tmp_path)
        return found

    monkeypatch.setattr(Path, "is_file", turn)
    with pytest.raises(InvalidInput, match="cannot be used"), use(share, "folder/secret"):
        pass
    assert (tmp_path / "secret").read_text() == "secret"


@pytest.fixture
def turned(share: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that becomes a link to the secret once somebody has seen that it is a file."""
    file = share / "file"
    file.write_text("harmless")
    looked = Path.is_file

    def turn(path: Path) -> bool:
        found = looked(path)
        if path.name == file.name:
            path.rename(share / "was")
            path.symlink_to(tmp_path / "secret")
        return found

    monkeypatch.setattr(Path, "is_file", turn)
    return file


async def test_a_file_that_becomes_a_link_at_the_last_moment_is_not_uploaded(user: Path, share: Path, turned: Path) -> None:
    async with connector("auto")(share=share) as client:
        up = await client.call_tool("upload_file", {"local_path": "file", "machine_path": "stolen"})
        assert ((share / "was").read_text(), turned.is_symlink()) == ("harmless", True)
        assert text_of(up).startswith("InvalidInput: file in the shared folder cannot be used: ")
        assert (await client.call_tool("read_file", {"path": "stolen"})).is_error


async def test_a_file_that_becomes_a_link_at_the_last_moment_is_replaced_and_not_what_it_leads_to(
    user: Path, share: Path, turned: Path, tmp_path: Path
) -> None:
    async with connector("auto")(share=share) as client:
        await client.call_tool("write_file", {"path": "x", "content": "of the machine"})
        data_of(await client.call_tool("download_file", {"machine_path": "x", "local_path": "file", "overwrite": True}))
    assert ((share / "was").read_text(), (tmp_path / "secret").read_text()) == ("harmless", "secret")
    assert (turned.is_symlink(), turned.read_text()) == (False, "of the machine")


async def test_what_this_computer_refuses_is_told_and_keeps_nobody_waiting(user: Path, share: Path) -> None:
    os.mkfifo(share / "pipe")
    (share / "circle").symlink_to(share / "circle")
    (share / "file").write_text("x")
    async with connector("auto")(share=share) as client:
        await client.call_tool("write_file", {"path": "x", "content": "x"})
        for path in ("pipe", "circle", "n" * 300, "file/below", "missing"):
            up = await client.call_tool("upload_file", {"local_path": path, "machine_path": "x"})
            assert text_of(up).startswith("InvalidInput: "), path
        for path in ("pipe", "circle", "n" * 300, "file/below"):
            down = await client.call_tool("download_file", {"machine_path": "x", "local_path": path, "overwrite": True})
            assert text_of(down).startswith("InvalidInput: "), path
        data_of(await client.call_tool("run_python", {"code": "1"}))


async def test_without_a_shared_folder_there_are_no_such_tools(user: Path) -> None:
    async with connector("auto")() as client:
        assert not {"upload_file", "download_file"} & {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize("handles", [True, False])
async def test_a_copy_that_does_not_come_leaves_no_folders(handles: bool, user: Path, share: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everforge.mcp.share._HAS_HANDLES", handles and sys.platform == "linux")
    (share / "there").mkdir()
    async with connector("auto")(share=share) as client:
        await client.call_tool("write_file", {"path": "x", "content": "x"})
        before = sorted(share.rglob("*"))
        for path in ("new/below/out.txt", "there/below/out.txt", "there/out.txt"):
            missing = await client.call_tool("download_file", {"machine_path": "missing", "local_path": path})
            assert text_of(missing).startswith("FileNotFound: "), path
            assert sorted(share.rglob("*")) == before
        data_of(await client.call_tool("download_file", {"machine_path": "x", "local_path": "new/below/out.txt"}))
        assert (share / "new" / "below" / "out.txt").read_text() == "x"


def test_what_somebody_has_put_into_a_new_folder_meanwhile_stays(share: Path) -> None:
    with pytest.raises(KeyError), target(share, "new/below/out.txt", False):
        (share / "new" / "theirs").write_text("theirs")
        raise KeyError
    assert sorted(path.name for path in (share / "new").iterdir()) == ["theirs"]
