"""`everforge machine files ...`: files and folders to a machine and back, whole or not at all."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.service import Running

from .conftest import Command, env_of, spawned


@pytest.fixture
def first(everforge: Command) -> Iterator[str]:
    name = everforge("machine", "new").out.strip()
    yield name
    everforge("machine", "delete", name)


def test_a_file_goes_there_and_comes_back(everforge: Command, first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content = bytes(range(256)) * 1000
    Path("some sales.csv").write_bytes(content)
    assert everforge("machine", "files", "put", first, "some sales.csv").out.endswith("some sales.csv: 256.0 kB\n")
    assert everforge("machine", "files", "put", first, "some sales.csv", "data/", "--json").json["size_bytes"] == len(content)
    listed = everforge("machine", "files", "list", first).out.splitlines()
    assert {line.split("\t")[-1] for line in listed} == {"data", "some sales.csv"}
    assert [file["name"] for file in everforge("machine", "files", "list", first, "data", "--json").json] == ["some sales.csv"]
    assert everforge("machine", "files", "get", first, "data/some sales.csv", "back.csv").out == "back.csv: 256.0 kB\n"
    assert Path("back.csv").read_bytes() == content
    Path("folder").mkdir()
    assert everforge("machine", "files", "get", first, "some sales.csv", "folder", "--json").json["local"] == "folder/some sales.csv"
    assert everforge("machine", "files", "delete", first, "some sales.csv").code == 0
    assert everforge("machine", "files", "get", first, "some sales.csv", "again.csv").code == 3
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["back.csv", "some sales.csv"]


def test_a_folder_goes_as_a_whole(everforge: Command, first: str, tmp_path: Path) -> None:
    (tmp_path / "project/deep").mkdir(parents=True)
    (tmp_path / "project/deep/file.txt").write_text("here")
    assert everforge("machine", "files", "put", first, str(tmp_path / "project")).code == 0
    assert everforge("machine", "files", "get", first, "project", str(tmp_path / "copy")).out == f"{tmp_path / 'copy'}: 1 files\n"
    assert (tmp_path / "copy/deep/file.txt").read_text() == "here"
    assert everforge("machine", "files", "delete", first, "project").code == 3
    assert everforge("machine", "files", "delete", first, "project", "--recursive", "--json").json == {"deleted": True}


def test_what_comes_on_stdin_becomes_a_file(everforge: Command, first: str, server: Running) -> None:
    content = bytes(range(256)) * 1000
    assert everforge("machine", "files", "put", first, "-", "data/from stdin", stdin=content).out.endswith("from stdin: 256.0 kB\n")
    with spawned("machine", "files", "get", first, "data/from stdin", "-", env=env_of(server), text=False) as process:
        assert process.communicate(timeout=60)[0] == content
    for path in ([], ["data/"]):
        nameless = everforge("machine", "files", "put", first, "-", *path, stdin=content)
        assert nameless.code == 2
        assert "stdin has no name of its own: say which file it becomes" in nameless.sentence


@pytest.mark.parametrize(
    "words",
    [["list", "nonesuch"], ["get", "nonesuch"], ["get", "a\0b", "x"], ["delete", "nonesuch"], ["put", "/nothing/here"], ["put", "/dev"]],
    ids=ascii,
)
def test_what_is_not_there_is_one_sentence(everforge: Command, first: str, words: list[str]) -> None:
    done = everforge("machine", "files", words[0], first, *words[1:])
    assert (done.code, done.out) == (3, "")
    assert done.sentence


def test_a_download_that_does_not_fit_leaves_nothing_and_says_why(server: Running, everforge: Command, first: str, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(1_000_000))
    everforge("machine", "files", "put", first, str(tmp_path / "large"))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

    words = ["machine", "files", "get", first, "large", str(tmp_path / "got")]
    with spawned(*words, env={**env_of(server), "PYTHONDONTWRITEBYTECODE": "1"}, preexec_fn=limit) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (3, "", f"everforge: {tmp_path / 'got'}: file too large\n")
    assert [path.name for path in tmp_path.iterdir() if "got" in path.name] == []


def test_a_file_can_go_to_stdout_and_whoever_reads_it_may_leave(server: Running, everforge: Command, first: str, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"line\n" * 500_000)
    everforge("machine", "files", "put", first, str(tmp_path / "large"))
    with spawned("machine", "files", "get", first, "large", "-", env=env_of(server)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "line\n"
        process.stdout.close()
        assert (process.wait(60), process.stderr.read()) == (141, "")
