"""`everforge repl`: on a pseudo-terminal as a person has it, and behind a pipe."""

from __future__ import annotations

import asyncio
import base64
import random
import re
import stat
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from everforge import AsyncEverforge, AsyncMachine
from everforge.cli.terminal import history, prompt
from everforge.cli.terminal.blocks import blocks, ends, indentation
from everforge.cli.terminal.pictures import Pictures, picture_of, way
from everforge.wire import api
from everforge.wire.errors import EverforgeError, VersionMismatch
from kit.house import House
from kit.proxy import proxy
from kit.service import QUIET, service, serving
from kit.terminal import environment, run, terminal

UP, CTRL_C, CTRL_D = "\x1b[A", "\x03", "\x04"
PASTED = "\x1b[200~def twice(x):\n    y = x\n\n    return y + x\n\x1b[201~"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n...").decode()


async def test_a_person_at_the_prompt(tmp_path: Path) -> None:
    async with service() as server:
        env = environment(server.url, server.token, tmp_path)
        async with AsyncEverforge(server.token, server.url) as client:
            await client.create("one")
        with terminal(env, "repl", "one") as person:
            await person.sees("one at http://")
            await person.prompted()
            person.types("for i in range(3):\rprint('n', i)\r\r")
            assert (await person.sees("n 0", "n 1", "n 2")).count("n 1") == 1
            await person.prompted()
            person.types(PASTED + "\r")
            await person.prompted()
            person.types("thrown away" + CTRL_C + "twice(21)\r")
            assert "away" in await person.sees("42")
            await person.prompted()
            person.types("1 / 0\r")
            await person.sees("ZeroDivisionError: division by zero")
            await person.prompted()
            person.types("tell('\\r10%', '\\r20%', partial=True, stream='stderr')\r")
            await person.sees("\r20%", "\r\n")  # the bar's line is finished before the prompt
            await person.prompted()
            person.types(f"show({{'image/png': '{PNG}'}})\r")
            shown = await person.sees("[picture: ", ".png]")
            await person.prompted()
            assert Path(shown.split("[picture: ")[1].split("]")[0]).read_bytes().startswith(b"\x89PNG")
            person.types("%machine\r")
            await person.sees("state", "ready")
            await person.prompted()
            person.types("print('be' 'gun'); hang()\r")
            await person.sees("begun")
            person.types(CTRL_C)
            await person.sees("KeyboardInterrupt")
            await person.prompted()
            person.types(CTRL_D)
            await person.sees("everforge repl one")
            assert await person.ends() == 0
        with terminal(env, "machine", "repl", "one") as person:
            await person.prompted()
            person.types("twi" + UP)  # of what was typed in the other process, what begins so
            await person.sees("twice(21)")
            person.types("\r")
            await person.sees("42")
            await person.prompted()
            async with AsyncEverforge(server.token, server.url) as client:
                await client.machine("one").delete()
            await person.sees("everforge: ", "deleted")
            assert await person.ends() == 3


async def test_a_restart_of_the_server_is_told_and_outlived(tmp_path: Path) -> None:
    house = House()
    await house.start()
    try:
        async with serving(house.machines, folder=tmp_path) as server:
            env, port = environment(server.url, server.token, tmp_path), int(server.url.rsplit(":", 1)[1])
            person = terminal(env, "repl", "--instruction-timeout-seconds", "600", "--tag", "a=b")
            typed = person.__enter__()
            await typed.prompted()
            typed.types("x = 40\r")
            await typed.sees("x = 40")
            await typed.prompted()
            typed.types("print('be' 'fore'); hang()\r")
            await typed.sees("before")
        await typed.sees("connection lost, reconnecting")
        async with serving(house.machines, replace(QUIET, port=port), folder=tmp_path):
            await typed.sees("connected again")
            typed.types(CTRL_C)
            await typed.sees("KeyboardInterrupt")
            await typed.prompted()
            typed.types("x + 2\r")
            assert "before" not in await typed.sees("42")
            await typed.prompted()
            typed.types(CTRL_D)
            assert await typed.ends() == 0
        person.__exit__(None, None, None)
    finally:
        await house.close()


async def test_ctrl_c_in_the_same_instant_as_enter_is_for_what_was_entered(tmp_path: Path) -> None:
    async with service() as server:
        with terminal(environment(server.url, server.token, tmp_path), "repl", "--instruction-timeout-seconds", "600") as person:
            await person.prompted()
            for behind in ("", "1 / 0\r"):  # what is typed before it is dropped, as at any terminal
                person.types("hang()\r" + behind + CTRL_C)
                assert "ZeroDivisionError" not in await person.sees("KeyboardInterrupt")
                await person.prompted()
            person.types("hang()\r" + CTRL_C + "20 + 22\r")  # and what is typed behind it is not
            await person.sees("KeyboardInterrupt", "42")


async def test_a_second_ctrl_c_insists_and_is_announced(tmp_path: Path) -> None:
    async with service() as server:
        with terminal(environment(server.url, server.token, tmp_path), "repl", "--instruction-timeout-seconds", "600") as person:
            await person.prompted()
            person.types("x = 20 + 22\r")
            await person.prompted()
            person.types("print('be' 'gun'); endure()\r")
            await person.sees("begun")
            person.types(CTRL_C)
            await person.sees("it still runs; Ctrl-C again kills it, with the machine's variables")
            person.types(CTRL_C)
            await person.sees("InterpreterDied")
            await person.prompted()
            person.types("x\r")
            await person.sees("NameError")


async def test_ctrl_c_while_the_server_is_away_is_sent_when_it_is_back(tmp_path: Path) -> None:
    house = House()
    await house.start()
    try:
        async with AsyncExitStack() as undo:
            async with serving(house.machines, folder=tmp_path) as server:
                env, port = environment(server.url, server.token, tmp_path), int(server.url.rsplit(":", 1)[1])
                person = undo.enter_context(terminal(env, "repl", "--instruction-timeout-seconds", "600"))
                await person.prompted()
                person.types("x = 20 + 22\r")
                await person.prompted()
                person.types("print('be' 'gun'); hang()\r")
                await person.sees("begun")
            await person.sees("connection lost, reconnecting")
            person.types(CTRL_C)
            await person.sees("interrupted as soon as the server is there again")
            async with serving(house.machines, replace(QUIET, port=port), folder=tmp_path):
                await person.sees("connected again", "KeyboardInterrupt")
                await person.prompted()
                person.types("x\r")
                await person.sees("42")  # it was interrupted, and not killed
    finally:
        await house.close()


async def test_tab_completes_from_the_live_machine(tmp_path: Path) -> None:
    async with service() as server:
        with terminal(environment(server.url, server.token, tmp_path), "repl") as person:
            await person.prompted()
            person.types("_, remarkable_1, remarkable_2 = 0, 20, 22\r")
            await person.prompted()
            person.types("remar\t")
            await person.sees("kable_", "remarkable_1", "remarkable_2")  # what they have in common, and what there is
            person.types("2 * 100\r")
            await person.sees("2200")
            await person.prompted()
            person.types("%mach\t")  # the prompt's own words, too
            await person.sees("ine")
            person.types("\r")
            await person.sees("state", "ready")
            await person.prompted()
            person.types("if True:\r\tprint('in' 'dented')\r\r")  # and where nothing stands yet, it indents
            await person.sees("indented")


async def test_a_block_comes_back_from_the_history_as_a_whole(tmp_path: Path) -> None:
    async with service() as server:
        env = environment(server.url, server.token, tmp_path)
        with terminal(env, "repl", "--tag", "a=b") as person:
            await person.prompted()
            person.types("def twice(x):\ry = x\rreturn y + x\r\r")
            await person.prompted()
            person.types(CTRL_D)
            assert await person.ends() == 0
        with terminal(env, "repl") as person:  # another process, another machine
            await person.prompted()
            person.types(UP)
            await person.sees("def", "twice", "return")
            person.types("\x1b\r")  # Alt-Enter runs it as it is
            await person.prompted()
            person.types("twice(21)\r")
            await person.sees("42")


async def test_after_every_cut_exactly_the_lines_come_that_had_not_been_printed(tmp_path: Path) -> None:
    async with service() as server, proxy(server.url) as wire:
        async with AsyncEverforge(server.token, server.url) as client:
            machine = await client.create()
        with terminal(environment(wire.url, server.token, tmp_path), "repl", machine.name, "--others") as person:
            await person.prompted()
            chance, shown = random.Random(11), ""
            wire.answer_bytes_left = lambda: chance.randrange(1000, 3000)
            for i in range(12):
                wire.cut()
                await server.machines.run(machine.name, f"for j in range(5): tell('row {i * 5} +' + str(j))")
                shown += await person.sees(f"row {i * 5} +4")
            wire.answer_bytes_left = None
            await server.machines.run(machine.name, "tell('the last row')")
            shown += await person.sees("the last row\r\n")
            assert wire.connections > 12
    assert re.findall(r"row (\d+) \+(\d)", shown) == [(str(i * 5), str(j)) for i in range(12) for j in range(5)]


async def test_without_a_terminal_it_runs_what_comes_up_to_the_first_thing_that_raises(tmp_path: Path) -> None:
    async with service() as server:
        env = environment(server.url, server.token, tmp_path)
        code, out, err = await run(
            env, "repl", stdin="for i in range(2):\n    print(i)\n\nelse:\n    print('done')\ntell('e', stream='stderr')\n1 + 1\n"
        )
        assert (code, out) == (0, "0\n1\ndone\n2\n")
        name, *rest = err.splitlines()
        assert (rest, name[:11]) == (["e"], "everforge: ")
        code, out, err = await run(env, "repl", name[11:], stdin="i\n1 / 0\nprint('never')\n")
        assert (code, out, err) == (1, "1\n", "ZeroDivisionError: division by zero\n")
        code, out, err = await run(env, "repl", name[11:], "--instruction-timeout-seconds", "0.1", stdin="hang()\n")
        assert (code, out, err) == (1, "", "Timed out after 0.1 s\neverforge: give it longer with --instruction-timeout-seconds\n")
        for words, wanted in ((["nonesuch"], 3), (["--tag", "novalue"], 2), ([name[11:], "--tag", "a=b"], 2)):
            code, _, err = await run(env, "repl", *words)
            assert code == wanted, err


class Completing:
    """A machine that has been asked what could stand there."""

    def __init__(self, answer: api.Completed | EverforgeError | None) -> None:
        self._answer = answer

    async def complete(self, code: str, cursor: int | None = None) -> api.Completed:
        if self._answer is None:
            await asyncio.Event().wait()
        assert isinstance(self._answer, api.Completed | EverforgeError)
        if isinstance(self._answer, EverforgeError):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    ("text", "answer", "offered"),
    [
        ("os.getc", api.Completed(matches=["getcwd", "getcwdb", "bad\x1b[6n"], start=3, end=7, busy=False), [("getcwd", -4), ("getcwdb", -4)]),
        ("os.getc", VersionMismatch("an old server"), []),
        ("os.getc", None, []),  # one that never answers
        ("%sna", api.Completed(matches=[], start=0, end=0, busy=True), [("%snapshot", -4)]),
    ],
)
async def test_completion_is_what_the_machine_says_and_nothing_when_it_says_nothing(
    text: str, answer: api.Completed | EverforgeError | None, offered: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt, "COMPLETE_SECONDS", 0.05)
    completer = prompt.MachineCompleter(cast(AsyncMachine, Completing(answer)))
    found = [(one.text, one.start_position) async for one in completer.get_completions_async(Document(text), CompleteEvent())]
    assert found == offered


# --- where code ends -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "over"),
    [
        ("1 + 1", True), ("x = (1,", False), ("for i in x:", False), ("for i in x:\n    i", False), ("for i in x:\n    i\n    ", True),
        ("for i in x: i", True), ("@cache", False), ("def f():\n    '''\n\n", False), ("async with x:", False), ("async with x:\n    y\n", True),
        ("def f():\n    s = '''\ntext\n'''", False), ("await x", True), ("%time f()", True), ("%%bash\nls", False), ("%%bash\nls\n", True), ("!ls", True), ("f?", True), ("this is wrong", True),
        ("def f[T](x: T):", False), ("x = 1 \\", False), ("if a:\n    b\nelse:", False),
    ],
)  # fmt: skip
def test_enter_runs_what_is_whole(code: str, over: bool) -> None:
    assert ends(code) is over


def test_a_stream_of_lines_is_cut_where_python_would_cut_it() -> None:
    script = (
        "x = 1\n# a remark\nif x:\n    y = 2\n\n    z = 3\nelif y:\n    pass\n@f\ndef g():\n    '''\n    doc\n'''\n\ntry: a\nfinally: b\nprint(\n1)\n"
    )
    cut = [
        "x = 1\n",
        "# a remark\nif x:\n    y = 2\n\n    z = 3\nelif y:\n    pass\n",
        "@f\ndef g():\n    '''\n    doc\n'''\n\n",
        "try: a\nfinally: b\n",
        "print(\n1)\n",
    ]
    assert list(blocks(script.splitlines(keepends=True))) == cut


@pytest.mark.parametrize(("line", "deep"), [("for i in x:", 4), ("    if a:  # why", 8), ("    return 1", 0), ("    a", 4), ("pass", 0)])
def test_the_next_line_begins_where_it_should(line: str, deep: int) -> None:
    assert len(indentation(line)) == deep


# --- what is kept ----------------------------------------------------------------------------------------------------------------------


def test_history_is_private_bounded_and_survives_a_damaged_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "ENTRIES_MAX", 10)
    path = tmp_path / "new" / "history.jsonl"
    kept = history.KeptHistory(path)
    for i in range(12):
        kept.store_string(f"line {i}\nmore é")
    kept.store_string("line 11\nmore é")
    kept.store_string("x" * history.ENTRY_BYTES_MAX)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with path.open("ab") as file:
        file.write(b'"half')
    assert list(history.KeptHistory(path).load_history_strings()) == [f"line {i}\nmore é" for i in (11, 10, 9, 8, 7)]
    assert len(path.read_text().splitlines()) == 5
    assert list(history.KeptHistory(tmp_path).load_history_strings()) == []  # not a file


def test_pictures_are_shown_where_the_terminal_can_and_kept_where_not(tmp_path: Path) -> None:
    assert way({"TERM": "xterm-kitty"}) == "kitty"
    assert way({"TERM": "xterm-kitty", "TMUX": "1"}) == "none"
    assert way({"TERM_PROGRAM": "iTerm.app"}) == "iterm"
    assert way({"TERM": "xterm-256color"}) == "none"
    picture = picture_of({"text/plain": "<Figure>", "image/png": PNG})
    assert picture is not None
    assert picture_of({"image/png": base64.b64encode(b"\x1b]0;not a picture").decode()}) is None
    assert Pictures("m", "kitty").shown(*picture, number=1).startswith("\x1b_Ga=T,f=100")
    assert f":{PNG}\x07" in Pictures("m", "iterm").shown(*picture, number=1)
    assert Pictures("../m", "none", tmp_path).shown(*picture, number=7) == f"[picture: {tmp_path}/m-7.png]\n"
