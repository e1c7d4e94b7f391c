"""`everforge machine logs`: the tape for people, and for programs that are killed and go on."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from everforge import AsyncEverforge, AsyncMachine
from everforge.cli.terminal.escapes import Escapes
from everforge.cli.terminal.transcript import Lines, Piece, pieces
from kit.service import Running, service
from kit.terminal import COMMAND, environment, run


@pytest.fixture
async def server() -> AsyncGenerator[Running]:
    async with service() as running:
        yield running


@pytest.fixture
async def machine(server: Running) -> AsyncGenerator[AsyncMachine]:
    async with AsyncEverforge(server.token, server.url) as client:
        yield await client.create("one")


async def test_logs_are_a_transcript_and_every_form_of_them_says_how_to_go_on(server: Running, machine: AsyncMachine, tmp_path: Path) -> None:
    env = environment(server.url, server.token, tmp_path)
    for code in ("print('a\\nb')\n1 + 1", "tell('half', partial=True)", "1 / 0", "tell('\x1b[6nred', stream='stderr')"):
        await machine.run(code)
    code, told, _ = await run(env, "machine", "logs", "one")
    assert code == 0
    assert told == (
        ">>> print('a\\nb')\n... 1 + 1\na\nb\n2\n>>> tell('half', partial=True)\nhalf\n>>> 1 / 0\nZeroDivisionError: division by zero\n"
        ">>> tell('\x1b[6nred', stream='stderr')\n\x1b[6nred\n"  # not a terminal: what it said, as it said it
    )
    (_, marked, _), (_, lines, _), (_, second, _) = await asyncio.gather(
        run(env, "machine", "logs", "one", "--positions"),
        run(env, "machine", "logs", "one", "--json"),
        run(env, "machine", "logs", "one", "--instruction", "0", "--follow", "--output"),
    )
    position = next(line.split()[0] for line in marked.splitlines() if line.endswith(" a"))
    assert next(entry["position"] for entry in map(json.loads, lines.splitlines()) if entry["type"] == "output") == int(position)
    assert second == "a\nb\n"
    _, rest, _ = await run(env, "machine", "logs", "one", "--after", position, "--positions")
    assert rest == marked[marked.index(" a\n") + 3 :]


async def test_a_reader_killed_at_any_line_goes_on_with_exactly_the_lines_it_has_not_printed(
    server: Running, machine: AsyncMachine, tmp_path: Path
) -> None:
    env = environment(server.url, server.token, tmp_path)
    words = ("machine", "logs", "one", "--output", "--cursor-file", str(tmp_path / "cursor"))
    for first in range(0, 400, 100):
        await machine.run(f"for i in range({first}, {first + 100}): print('line', i, '.' * 200)")
    printed = b""
    for seen in (1, 30, 60):  # and at most the rest of the hundred that it had in hand
        printed += await asyncio.to_thread(read_and_kill, env, [*words, "--follow"], seen)
    _, rest, _ = await run(env, *words)
    assert (printed.decode() + rest).splitlines() == [f"line {i} {'.' * 200}" for i in range(400)]
    assert rest


def read_and_kill(env: dict[str, str], words: list[str], lines: int) -> bytes:
    """Everything that came out of it. It is killed right when its last line has come; its pipe holds few more."""
    end, other = os.pipe()
    fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 4096)
    with open(end, "rb", buffering=0) as pipe, subprocess.Popen([*COMMAND, *words], env=env, stdin=subprocess.DEVNULL, stdout=other) as reader:
        os.close(other)
        printed = b"".join(pipe.readline() for _ in range(lines))
        reader.kill()
        return printed + pipe.read()


async def test_a_cursor_file_of_another_machine_or_kind_is_refused(server: Running, machine: AsyncMachine, tmp_path: Path) -> None:
    env = environment(server.url, server.token, tmp_path)
    async with AsyncEverforge(server.token, server.url) as client:
        await client.create("two")
    await run(env, "machine", "logs", "two", "--cursor-file", str(tmp_path / "cursor"))
    (tmp_path / "other").write_text("my diary")
    answers = await asyncio.gather(
        run(env, "machine", "logs", "one", "--cursor-file", str(tmp_path / "cursor")),
        run(env, "machine", "logs", "one", "--cursor-file", str(tmp_path / "other")),
        run(env, "machine", "logs", "nonesuch"),
    )
    assert [code for code, _, _ in answers] == [3, 3, 3]
    for (_, _, told), words in zip(answers, ("another machine (two", "something else than a cursor file", "no machine nonesuch"), strict=True):
        assert words in told
        assert told.count("\n") == 1
    assert (tmp_path / "other").read_text() == "my diary"


@pytest.mark.parametrize(
    ("parts", "kept"),
    [
        (["\x1b[31mred\x1b[0m 50%\r100%\b\t\n"], "\x1b[31mred\x1b[0m 50%\r100%\b\t\n"),
        (["a\x1b]0;title\x07b\x1b]52;c;aGk=\x1b\\c\x1bP$q\x1b\\d"], "abcd"),
        (["\x1b", "[6n", "x"], "x"),
        (["\x1b\x00[6n"], "[6n"),
        (["\x1b[?1049h\x1b[5i\x1bc\x9b6n\x00\x7f"], "6n"),
        (["\x1b[3", "1mred"], "\x1b[31mred"),
        (["\x1b]never ended\n", "next"], "never ended\nnext"),
        (["\x1b]" + "x" * 5000, "after"], "after"),
        (["\ud800é"], "é"),
    ],
)
def test_a_terminal_gets_colours_and_nothing_that_would_make_it_answer(parts: list[str], kept: str) -> None:
    escapes = Escapes()
    assert "".join(escapes.pass_on(part) for part in parts) == kept


def test_an_unfinished_line_is_finished_before_anything_but_output() -> None:
    lines = Lines()
    given = [Piece(0, "stdout", "\r10%", True), Piece(1, "stdout", "\r20%", True), Piece(2, ""), Piece(3, "value", "5"), Piece(4, "code", ">>> 1")]
    written = "".join(before + piece.text + after for piece in given for before, after in [lines.text(piece)])
    assert written == "\r10%\r20%\n5\n>>> 1\n"


def test_what_took_too_long_is_said_behind_its_traceback() -> None:
    late = {
        "type": "ended",
        "position": 7,
        "cursor": 7,
        "end": "timed_out",
        "error": "Timed out after 15 s",
        "traceback": "Traceback\nKeyboardInterrupt\n",
    }
    assert [piece.text for piece in pieces(late)] == ["Traceback\nKeyboardInterrupt\nTimed out after 15 s"]


def test_entries_of_a_kind_that_is_not_shown_still_move_the_cursor() -> None:
    assert list(pieces({"type": "moved", "position": 7, "cursor": 7})) == [Piece(7, "")]
