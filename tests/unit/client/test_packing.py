"""Folders as archives, and back: what comes from a machine may be anyone's work."""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everforge.client.packing import pack, unpack
from everforge.wire.errors import ArchiveRefused, InvalidInput
from kit.length import length


def archive(*entries: tuple[str, bytes | str], hard: str = "") -> io.BytesIO:
    """Of names with contents; a content that is a string is the target of a link, and one that begins with \\0 a kind. Hard links go to `hard`."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
            elif content[:1] == b"\0":
                info.type, info.linkname = content[1:], hard
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


def test_a_link_through_what_becomes_a_link_later_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    entries = [("a", "p/e/../../precious"), ("z", b"\0" + tarfile.DIRTYPE), ("p/e", "../z")]  # p/e is no folder yet when a is made
    with pytest.raises(ArchiveRefused, match="'a' in the archive"):
        unpack(archive(*entries), tmp_path / "target")
    assert not (tmp_path / "target" / "a").is_symlink()


def test_a_link_through_one_that_was_there_before_is_taken_away(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "own").symlink_to(tmp_path)
    with pytest.raises(ArchiveRefused, match="'a' in the archive"):
        unpack(archive(("a", "q/own/precious"), ("q", "."), ("file", b"x")), target)
    assert sorted(path.name for path in target.iterdir()) == ["file", "own", "q"]


def test_links_inside_the_folder_work_in_any_order_and_through_others(tmp_path: Path) -> None:
    entries = [
        ("modules/.bin/tool", "../tool/cli.js"),
        ("lib64", "./lib"),
        ("lib/gone", "../not/there"),
        ("lib/root", ".."),
        ("through", "lib64/root/modules/.bin/tool"),
        ("modules/tool/cli.js", b"tool"),
    ]
    assert unpack(archive(*entries), tmp_path) == 6
    assert (tmp_path / "modules/.bin/tool").read_bytes() == (tmp_path / "through").read_bytes() == b"tool"
    assert os.readlink(tmp_path / "lib/gone") == "../not/there"


LINKS = ["a", "b", "d/a", "d/b"]
WAYS = st.tuples(
    st.sampled_from(["", ".."]), st.sampled_from([*LINKS, "d"]), st.sampled_from(["", "..", "../.."]), st.sampled_from(["x", "a", "d", ".."])
).map(lambda parts: "/".join(filter(None, parts)))
# Of links that look as if they stayed inside: an archive is given up at the first that does not, and the rest of it would not be tried.
SEEMLY = st.tuples(st.sampled_from(LINKS), WAYS).filter(
    lambda link: not os.path.normpath(os.path.join(os.path.dirname(link[0]), link[1])).startswith("..")
)
STRANGE = st.tuples(
    st.sampled_from([*LINKS, "d", "a/x", "../x"]), WAYS | st.sampled_from([b"content", b"\0" + tarfile.DIRTYPE, b"\0" + tarfile.LNKTYPE])
)


@settings(max_examples=length(300, 5000), deadline=None)
@given(st.lists(SEEMLY, min_size=2, max_size=4, unique_by=lambda link: link[0]), st.lists(STRANGE, max_size=2), WAYS)
def test_nothing_below_the_folder_leads_out_of_it_whatever_comes_in_whatever_order(
    entries: list[tuple[str, bytes | str]], last: list[tuple[str, bytes | str]], hard: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(os.path.realpath(folder)) / "outer" / "target"
        with suppress(ArchiveRefused, OSError):
            unpack(archive(*entries, *last, hard=hard), target)
        assert [path.name for path in Path(folder).iterdir()] == ["outer"]
        assert [path.name for path in target.parent.iterdir()] == ["target"]
        for path in target.rglob("*"):
            assert Path(os.path.realpath(path)).is_relative_to(target), path


@pytest.mark.parametrize(
    "entries", [[("hard", b"\0" + tarfile.LNKTYPE)], [("a", "b"), ("b", "a"), ("hard", b"\0" + tarfile.LNKTYPE)]], ids=["to nothing", "to a circle"]
)
def test_a_hard_link_to_nothing_is_refused_in_words(tmp_path: Path, entries: list[tuple[str, bytes | str]]) -> None:
    with pytest.raises(ArchiveRefused, match="cannot be read"):
        unpack(archive(*entries, hard="a"), tmp_path)


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
