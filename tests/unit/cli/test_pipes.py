"""`everforge ... | head -1`: a reader who has seen enough is no reason to complain, whatever was asked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kit.service import Running

from .conftest import Command, env_of

MANY = "for i in range(20000): print('line', i)"


def test_the_first_lines_of_every_command_can_be_taken(everforge: Command, server: Running, home: Path) -> None:
    everforge("machine", "new", "--name", "piped")
    everforge("machine", "exec", "piped", "print('x' * 200_000)")
    everforge("machine", "files", "put", "piped", "-", "big", stdin=b"x" * 1_000_000)
    commands = [
        "machine list", "machine list --json", "machine show piped", "machine new", "machine exec piped 1", "machine logs piped",
        "machine logs piped --follow --instruction 0", f"machine logs piped --cursor-file {home}/cursor", "machine files list piped",
        "machine files list piped --json", "machine files get piped big -", "machine snapshot piped", "machine tag piped a=b", "token list", "account list",
        "usage", "whoami", "settings", "settings --json", "doctor", "image list", "--help", "machine --help", "--version", "token link",
    ]  # fmt: skip
    for words in commands:
        assert _with_nobody_reading(server, words.split()) == (141, ""), words


@pytest.mark.parametrize("words", [["repl", "piped2"], ["machine", "exec", "piped2", "-"]])
def test_a_stream_whose_reader_goes_away_ends(everforge: Command, server: Running, words: list[str]) -> None:
    everforge("machine", "new", "--name", "piped2")
    assert _with_nobody_reading(server, words, MANY) == (141, "")


def _with_nobody_reading(server: Running, words: list[str], stdin: str = "") -> tuple[int, str]:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as gone:
        argv, env = [sys.executable, "-m", "everforge", *words], {**os.environ, **env_of(server)}
        done = subprocess.run(argv, env=env, input=stdin, stdout=gone, stderr=subprocess.PIPE, text=True, timeout=120)
    return done.returncode, done.stderr
