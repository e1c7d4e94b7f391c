"""Numbers on the command line: one that cannot be is refused in a sentence, whichever option it was given to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from everforge.cli.app import app

from .conftest import Command

BEFORE = {"exec": ["u1", "1"], "quota": ["owner"], **{key: ["u1"] for key in ("repl", "logs", "fork", "rollback", "log")}}


def options_with_a_number(command: Any, *words: str) -> Iterator[list[str]]:
    for name, below in getattr(command, "commands", {}).items():
        yield from options_with_a_number(below, *words, name)
    for option in command.params:
        if option.type_descriptor.annotation in (int, float):
            yield [*words, *BEFORE.get(words[-1], []), option.opts[0]]


ALL = list(options_with_a_number(typer.main.get_command(app)))


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def execv(*_: object) -> None:
        print("a server would have begun")

    monkeypatch.setattr(os, "execv", execv)


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_a_number_that_cannot_be_is_refused_in_one_sentence_that_names_it(everforge: Command, words: list[str]) -> None:
    everforge("machine", "new", "--name", "u1")
    for number in ("1" + 20 * "0", "1" + 400 * "0", "-1" + 20 * "0", "inf", "-inf", "nan", "one"):
        done = everforge(*words[:-1], f"{words[-1]}={number}", stdin="1")
        assert (done.code in (2, 3), done.out) == (True, ""), (number, done)
        assert done.sentence


def test_all_of_them_were_found() -> None:
    assert {"--port", "--memory-mb", "--limit", "--last", "--count", "--after", "--requests-per-second"} <= {words[-1] for words in ALL}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["egress", "log", "u1", "--limit", "1" + 20 * "0"], "less than or equal to 1000000"),
        (["serve", "--port", "65536"], "less than or equal to 65535"),
        (["serve", "--port", "-1"], "greater than or equal to 0"),
        (["machine", "fork", "u1", "--count", "0"], "greater than or equal to 1"),
        (["machine", "rollback", "u1", "--instruction", "-1"], "greater than or equal to 0"),
    ],
)
def test_what_no_server_takes_is_wrong_usage(everforge: Command, words: list[str], why: str) -> None:
    done = everforge(*words)
    assert (done.code, done.out) == (2, "")
    assert why in done.sentence
    assert words[-2] in done.sentence
