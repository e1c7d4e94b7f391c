"""Files of a machine, by both clients."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import everforge
from everforge.wire.errors import FileNotFound, FolderNotEmpty, InvalidInput, NotAFile
from kit.proxy import Proxy

Client = everforge.AsyncEverforge


async def test_what_is_written_is_read_listed_and_deleted(client: Client) -> None:
    files = (await client.create()).files
    for path in ("plain.txt", "a folder/é ü.txt", ".hidden", "-dash", "a%2Fb?c#d"):
        assert (await files.write(path, f"in {path}")).size_bytes == len(f"in {path}".encode())
        assert await files.read_text(path) == f"in {path}"
        assert await files.exists(path)
    assert {found.name async for found in files.list()} >= {"plain.txt", "a folder", ".hidden", "-dash", "a%2Fb?c#d"}
    assert [(found.name, found.kind) async for found in files.list("a folder")] == [("é ü.txt", "file")]
    assert await files.read("a folder/../plain.txt") == b"in plain.txt"
    assert b"".join([chunk async for chunk in files.stream("plain.txt", start=3)]) == b"plain.txt"
    with pytest.raises(FolderNotEmpty):
        await files.delete("a folder")
    await files.delete("a folder", recursive=True)
    assert not await files.exists("a folder")


async def test_any_name_that_a_machine_can_have_is_read_written_and_listed(client: Client) -> None:
    files = (await client.create()).files
    names = ["a b", "a#b", "a?b", "a%b", "%2e%2e", "...", "..x", ".y", "ü", "日本", "a&b=c;d", "~", "\\"]
    for name in names:
        await files.write(name, name)
        assert await files.read_text(name) == name
        await files.write(f"below/{name}/{name}", name)
        assert await files.read_text(f"below/{name}/{name}") == name
        assert [found.name async for found in files.list(f"below/{name}")] == [name]
    assert {found.name async for found in files.list()} >= {*names}


@pytest.mark.parametrize("path", ["..", ".", "a/..", "a/../..", "../..", "a/./b", "/..", "../m"])
async def test_what_climbs_is_never_deleted_least_of_all_the_machine(client: Client, path: str) -> None:
    machine = await client.create("m")
    await machine.files.write("a/b", "kept")
    with pytest.raises(InvalidInput, match=r"give the path without them"):
        await machine.files.delete(path, recursive=True)
    assert await machine.files.read_text("a/b") == "kept"


@pytest.mark.parametrize("path", ["..", ".", "a/../.."])
async def test_what_climbs_stays_a_path_of_a_file(client: Client, path: str) -> None:
    files = (await client.create()).files
    await files.write("a/b", "")
    with pytest.raises(NotAFile):
        await files.read(path)


async def test_what_is_not_there_or_no_path_is_said(client: Client) -> None:
    files = (await client.create()).files
    with pytest.raises(FileNotFound):
        await files.read("nothing")
    await files.write("folder/file", b"")
    with pytest.raises(NotAFile):
        await files.read("folder")
    assert await files.exists("folder")
    for path in ("", "a\0b", "a\ud800", 3, None):
        with pytest.raises(InvalidInput):
            await files.write(path, b"")  # pyright: ignore[reportArgumentType]


async def test_what_is_no_file_is_never_replaced_by_one(client: Client, tmp_path: Path) -> None:
    files = (await client.create()).files
    await files.write("came", "from the machine")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "opened").symlink_to("/proc/self/exe")  # as /dev/stdout is
    for name in ("pipe", "link", "opened"):
        with pytest.raises(FileExistsError) as error:
            await files.download("came", tmp_path / name)
        assert error.value.filename == str(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "opened", "pipe"]
    assert (tmp_path / "pipe").is_fifo()


async def test_a_file_that_cannot_be_made_has_the_name_that_it_was_given(client: Client, tmp_path: Path) -> None:
    files = (await client.create()).files
    await files.write("came", "from the machine")
    (tmp_path / "folder").mkdir()
    for name, kind in (("no/where", FileNotFoundError), ("folder", IsADirectoryError)):
        with pytest.raises(kind) as error:
            await files.download("came", tmp_path / name)
        assert error.value.filename == str(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


async def test_files_go_up_and_down_in_pieces_and_through_a_cut(client: Client, wire: Proxy, tmp_path: Path) -> None:
    files = (await client.create()).files
    content = bytes(range(256)) * 4096
    (tmp_path / "local").write_bytes(content)
    told: list[tuple[int, int | None]] = []
    await files.upload(tmp_path / "local", "remote", progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (len(content), len(content))
    assert len(told) > 1
    cuts = iter([100_000])
    wire.answer_bytes_left = lambda: next(cuts, 1 << 30)
    wire.cut()
    assert await files.download("remote", tmp_path / "back") == len(content)
    assert (tmp_path / "back").read_bytes() == content
    with pytest.raises(FileNotFound):
        await files.download("nothing", tmp_path / "nothing")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "local"]


async def test_folders_go_up_and_down(client: Client, tmp_path: Path) -> None:
    files = (await client.create()).files
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "é.txt").write_text("deep")
    (source / "top").write_bytes(b"\0" * 1000)
    await files.upload_folder(source, "there")
    assert await files.read_text("there/sub/é.txt") == "deep"
    assert await files.download_folder("there", tmp_path / "back") == 2
    assert (tmp_path / "back/sub/é.txt").read_text() == "deep"
    assert (tmp_path / "back/top").read_bytes() == b"\0" * 1000
