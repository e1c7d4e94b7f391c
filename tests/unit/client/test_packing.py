"""Folders as archives, and back: what comes from a machine may be anyone's work."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from everforge.client.packing import pack, unpack
from everforge.wire.errors import ArchiveRefused, InvalidInput


def archive(*entries: tuple[str, bytes | str | bytes]) -> io.BytesIO:
    """Of names with contents; a content that is a string is the target of a link, and one that begins with \\0 a kind."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
            elif content[:1] == b"\0":
                info.type = content[1:]
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    made.seek(0)
    return made


def test_a_folder_comes_back_as_it_went(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "sub folder" / "empty").mkdir(parents=True)
    (source / "é ü.txt").write_text("hello")
    (source / "-dash").write_bytes(bytes(range(256)))
    (source / "sub folder" / "run.sh").write_text("#!/bin/sh")
    (source / "sub folder" / "run.sh").chmod(0o755)
    (source / "link").symlink_to("sub folder/run.sh")
    os.link(source / "-dash", source / "same")
    os.mkfifo(source / "pipe")
    carried = io.BytesIO()
    pack(source, carried)
    carried.seek(0)
    assert unpack(carried, tmp_path / "target") == 5
    target = tmp_path / "target"
    assert {str(path.relative_to(target)) for path in target.rglob("*")} == {
        "é ü.txt", "-dash", "same", "link", "sub folder", "sub folder/empty", "sub folder/run.sh",
    }  # fmt: skip
    assert (target / "same").read_bytes() == bytes(range(256))
    assert (target / "link").read_text() == "#!/bin/sh"
    assert os.access(target / "sub folder/run.sh", os.X_OK)


@pytest.mark.parametrize(
    "entries",
    [
        [("../outside", b"x")],
        [("a/../../outside", b"x")],
        [("/tmp/everforge-outside", b"x")],
        [("link", "/tmp")],
        [("link", "..")],
        [("d/link", "../../outside")],
        [("a", "."), ("a/../../outside", b"x")],
        [("device", b"\0" + tarfile.CHRTYPE)],
        [("pipe", b"\0" + tarfile.FIFOTYPE)],
        [("..", b"\0" + tarfile.DIRTYPE)],
    ],
)
def test_nothing_lands_outside_and_nothing_strange_inside(tmp_path: Path, entries: list[tuple[str, bytes | str]]) -> None:
    with pytest.raises(ArchiveRefused):
        unpack(archive(*entries), tmp_path / "in" / "target")
    assert not list(tmp_path.rglob("outside*"))
    assert not Path("/tmp/everforge-outside").exists()


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (tmp_path / "precious").write_text("precious")
    (target / "file").symlink_to(tmp_path / "precious")  # was there before
    unpack(archive(("file", b"new")), target)
    assert (tmp_path / "precious").read_text() == "precious"
    assert (target / "file").read_text() == "new"


def test_what_is_no_archive_or_no_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(ArchiveRefused, match="cannot be read"):
        unpack(io.BytesIO(b"x" * 2000), tmp_path)
    with pytest.raises(InvalidInput, match="not a folder"):
        pack(tmp_path / "missing", io.BytesIO())
