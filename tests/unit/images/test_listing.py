"""The digest of a folder: what it depends on, and what it does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from everforge.images.finish import EPOCH_SECONDS, set_modes, settle_times
from everforge.images.listing import differences, read_lines, tally, write_listing


def make_tree(root: Path) -> Path:
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/tool").write_text("#!/bin/sh\n")
    (root / "usr/bin/tool").chmod(0o4777)
    (root / "usr/bin/a name\nwith ünusual letters").write_text("x")
    (root / "bin").symlink_to("usr/bin")
    set_modes(root)
    settle_times(root)
    return root


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "root")


def digest(root: Path) -> str:
    return write_listing(read_lines(root), root.parent / f"{root.name}.listing")


def test_two_folders_with_the_same_content_have_the_same_digest(tree: Path, tmp_path: Path) -> None:
    assert digest(tree) == digest(make_tree(tmp_path / "other"))


def test_times_do_not_count(tree: Path) -> None:
    before = digest(tree)
    os.utime(tree / "usr/bin/tool", (1, 1))
    assert digest(tree) == before


@pytest.mark.parametrize("change", ["content", "mode", "name", "link", "added", "removed"])
def test_everything_else_counts(tree: Path, change: str) -> None:
    before = digest(tree)
    tool = tree / "usr/bin/tool"
    if change == "content":
        tool.write_text("#!/bin/zs\n")
    elif change == "mode":
        tool.chmod(0o700)
    elif change == "name":
        tool.rename(tree / "usr/bin/took")
    elif change == "link":
        (tree / "bin").unlink()
        (tree / "bin").symlink_to("./usr/bin")
    elif change == "added":
        (tree / "usr/lib").mkdir()
    else:
        tool.unlink()
    assert digest(tree) != before


def test_a_part_and_the_rest_make_the_whole(tree: Path) -> None:
    rest = [line for line in read_lines(tree) if not line.rsplit(" ", 1)[1].startswith("usr/bin")]
    assert sorted([*rest, *read_lines(tree, "usr/bin")]) == sorted(read_lines(tree))


def test_differences_name_the_files(tree: Path, tmp_path: Path) -> None:
    place = tmp_path / "root.listing"
    known = digest(tree)
    assert differences(tree, place, known) == ""
    (tree / "usr/bin/tool").write_text("#!/bin/zs\n")
    assert differences(tree, place, known) == "/usr/bin/tool"
    place.write_text(place.read_text().replace("tool", "took"))
    assert differences(tree, place, known) == "the listing itself was changed"


def test_the_quick_look_sees_a_file_that_was_written_to(tree: Path) -> None:
    before = tally(tree)
    assert before.untimely == 0
    (tree / "usr/bin/tool").write_text("#!/bin/zs\n")  # as long as before
    assert tally(tree).untimely == 1


def test_nothing_is_setuid_or_writable_by_others_and_all_is_readable(tree: Path) -> None:
    (tree / "secret").write_text("")
    (tree / "secret").chmod(0o600)
    set_modes(tree)
    assert (tree / "usr/bin/tool").stat().st_mode & 0o7777 == 0o755
    assert (tree / "secret").stat().st_mode & 0o7777 == 0o644


def test_every_time_is_the_same(tree: Path) -> None:
    assert {path.lstat().st_mtime for path in [tree, *tree.rglob("*")]} == {EPOCH_SECONDS}
