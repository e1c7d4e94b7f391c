"""Which mirror is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from everforge.images.debian import host_mirror
from everforge.wire.errors import ImageBuildFailed


def etc_with(folder: Path, **files: str) -> Path:
    (folder / "sources.list.d").mkdir()
    for name, text in files.items():
        stem, _, kind = name.rpartition("_")
        place = folder if stem == "sources" and kind == "list" else folder / "sources.list.d"
        (place / f"{stem}.{kind}").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("files", "mirror"),
    [
        (
            {"sources_list": "# deb http://no/debian bookworm main\ndeb [arch=amd64] http://near/debian/ bookworm main contrib\n"},
            "http://near/debian",
        ),
        (
            {"debian_sources": "Types: deb\n# a note\nURIs: http://near/debian\nSuites: trixie trixie-updates\nComponents: main\n"},
            "http://near/debian",
        ),
    ],
)
def test_the_mirror_is_the_one_the_host_takes_debian_from(tmp_path: Path, files: dict[str, str], mirror: str) -> None:
    assert host_mirror(etc_with(tmp_path, **files)) == mirror


@pytest.mark.parametrize(
    "files",
    [
        {"sources_list": "deb http://near/debian-security bookworm-security main\n"},
        {"tool_list": "deb https://example.org/apt tool-bookworm main\n"},
        {"off_sources": "Enabled: no\nURIs: http://no/debian\nSuites: trixie\nComponents: main\n"},
        {"ubuntu_sources": "URIs: http://archive/ubuntu\nSuites: noble\nComponents: main\n"},
        {},
    ],
)
def test_a_host_without_a_debian_mirror_is_told_so(tmp_path: Path, files: dict[str, str]) -> None:
    with pytest.raises(ImageBuildFailed, match="mirror"):
        host_mirror(etc_with(tmp_path, **files))


def test_a_list_of_mirrors_is_followed_to_its_first(tmp_path: Path) -> None:
    (tmp_path / "mirrors").write_text("https://first/debian\nhttps://second/debian\n")
    etc = etc_with(tmp_path, sources_list=f"deb mirror+file:{tmp_path}/mirrors trixie main\n")
    assert host_mirror(etc) == "https://first/debian"
