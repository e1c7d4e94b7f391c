"""The command line in this process, where that will do: loading everything anew for each command would take most of the time."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from everforge import cli
from kit.background import in_background
from kit.newcomer import move_in
from kit.service import Running


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def sentence(self) -> str:
        """The one that a refusal is."""
        assert self.err.startswith("everforge: "), self.err
        assert self.err.count("\n") == 1, self.err
        return self.err


class Command(Protocol):
    def __call__(self, *words: str, stdin: str | bytes = b"") -> Done: ...


def env_of(server: Running) -> dict[str, str]:
    return {"EVERFORGE_URL": server.url, "EVERFORGE_TOKEN": server.token}


@pytest.fixture(scope="module")
def server() -> Generator[Running]:
    with in_background() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has nothing yet."""
    return move_in(tmp_path, monkeypatch)


@pytest.fixture
def stranger(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command line of such a user."""

    def command(*words: str, stdin: str | bytes = b"") -> Done:
        given = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), encoding="utf-8"))
        capsys.readouterr()
        code = cli.run(list(words))
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return command


@pytest.fixture
def everforge(server: Running, stranger: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command line of the server's owner."""
    for name, value in env_of(server).items():
        monkeypatch.setenv(name, value)
    return stranger


def spawned(*words: str, env: dict[str, str] | None = None, **options: Any) -> subprocess.Popen[str]:
    """A process of its own, for what belongs to a process: signals, pipes, limits."""
    settings: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.Popen([sys.executable, "-m", "everforge", *words], env={**os.environ, **(env or {})}, **settings)
