"""`everforge repl` in the other languages, on a pseudo-terminal, as a person has it; tests/unit/cli/test_repl.py is the same for Python's."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from everforge import AsyncEverforge
from kit.commandlines import Answer, normal
from kit.commandprograms import others, program
from kit.house import House
from kit.service import QUIET, service, serving
from kit.terminal import Terminal, environment, terminal

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
UP, CTRL_C, CTRL_D, ALT_ENTER = "\x1b[A", "\x03", "\x04", "\x1b\r"
PASTED = "\x1b[200~def twice(x):\n    y = x\n\n    return y + x\n\x1b[201~"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n...").decode()


def person_at(language: str, env: Mapping[str, str], *words: str) -> AbstractContextManager[Terminal]:
    return terminal(env, "repl", *words, command=[str(word) for word in program(language).command])


@others
async def test_a_person_at_the_prompt(language: str, tmp_path: Path) -> None:
    async with service() as server:
        env = environment(server.url, server.token, tmp_path)
        async with AsyncEverforge(server.token, server.url) as client:
            await client.create("one")
        with person_at(language, env, "one", "--instruction-timeout-seconds", "600") as person:
            await person.sees("one at http://", "%help shows what there is; Ctrl-D leaves.")
            await person.prompted()
            person.types("for i in range(3):\rprint('n', i * 10)\r\r")
            assert (await person.sees("n 0", "n 10", "n 20")).count("n 10") == 1
            await person.prompted()
            person.types(PASTED + "\r")
            await person.prompted()
            person.types("thrown away" + CTRL_C)
            await person.prompted()
            person.types("twice(21)\r")
            await person.sees("42")
            await person.prompted()
            person.types("1 / 0\r")
            await person.sees("ZeroDivisionError: division by zero")
            await person.prompted()
            person.types(f"show({{'image/png': '{PNG}'}})\r")
            shown = await person.sees("[picture: ", ".png]")
            await person.prompted()
            assert Path(shown.split("[picture: ")[-1].split("]")[0]).read_bytes().startswith(b"\x89PNG")
            person.types("%machine\r")
            await person.sees("state", "ready")
            await person.prompted()
            person.types("tell('ha' 'lf', partial=True)\r")
            await person.sees("half", "\r\n")  # its line is finished before the prompt
            await person.prompted()
            person.types(CTRL_D)
            await person.sees("one stays as it is: `everforge repl one` goes on here.")
            assert await person.ends() == 0


@others
async def test_ctrl_c_interrupts_what_runs_and_a_second_one_insists(language: str, tmp_path: Path) -> None:
    async with service() as server:
        with person_at(language, environment(server.url, server.token, tmp_path), "--instruction-timeout-seconds", "600") as person:
            await person.prompted()
            person.types("x = 20 + 22\r")
            await person.prompted()
            person.types("print('be' 'gun'); hang()\r")
            await person.sees("begun")
            person.types(CTRL_C)
            await person.sees("KeyboardInterrupt")
            await person.prompted()
            person.types("hang()\r" + CTRL_C + "x\r")  # in the same instant: it is for what was entered, and what comes behind it for the next prompt
            await person.sees("KeyboardInterrupt", "42")
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


@others
async def test_tab_completes_from_the_live_machine(language: str, tmp_path: Path) -> None:
    async with service() as server:
        with person_at(language, environment(server.url, server.token, tmp_path)) as person:
            await person.prompted()
            person.types("_, remarkable_1, remarkable_2 = 0, 20, 22\r")
            await person.prompted()
            person.types("remar\t")
            await person.sees("remarkable_")  # what they have in common,
            person.types("\t")
            await person.sees("remarkable_1", "remarkable_2")  # and what there is
            person.types("2 * 100\r")
            await person.sees("2200")
            await person.prompted()
            person.types("%mach\t")  # the prompt's own words, too
            await person.sees("%machine")
            person.types("\r")
            await person.sees("state", "ready")
            await person.prompted()
            person.types("if True:\r\tprint('in' 'dented')\r\r")  # and where nothing stands yet, it indents
            await person.sees("indented")


@others
async def test_history_is_there_in_another_process_blocks_as_a_whole(language: str, tmp_path: Path) -> None:
    async with service() as server:
        env = environment(server.url, server.token, tmp_path)
        with person_at(language, env, "--tag", "a=b") as person:
            await person.prompted()
            person.types("def twice(x):\ry = x\rreturn y + x\r\r")
            await person.prompted()
            person.types("n = 20 + 1\r")
            await person.prompted()
            person.types(CTRL_D)
            assert await person.ends() == 0
        with person_at(language, env) as person:  # on another machine
            await person.prompted()
            person.types("def" + UP)  # what begins so
            await person.sees("twice", "return")
            person.types(ALT_ENTER)  # runs it as it is
            await person.prompted()
            person.types("twice(21)\r")
            await person.sees("42")
            await person.prompted()
            person.types("n" + UP + "\r")
            await person.prompted()
            person.types("twice(n) * 100\r")
            await person.sees("4200")


@others
async def test_a_restart_of_the_server_is_told_and_outlived(language: str, tmp_path: Path) -> None:
    house = House()
    await house.start()
    try:
        async with serving(house.machines, folder=tmp_path) as server:
            env, port = environment(server.url, server.token, tmp_path), int(server.url.rsplit(":", 1)[1])
            person = person_at(language, env, "--instruction-timeout-seconds", "600", "--tag", "a=b")
            typed = person.__enter__()
            await typed.prompted()
            typed.types("x = 40\r")
            await typed.prompted()
            typed.types("print('be' 'fore'); hang()\r")
            await typed.sees("before")
        await typed.sees("connection lost, reconnecting")
        typed.types(CTRL_C)
        await typed.sees("interrupted as soon as the server is there again")
        async with serving(house.machines, replace(QUIET, port=port), folder=tmp_path):
            await typed.sees("connected again")
            await typed.sees("KeyboardInterrupt")
            await typed.prompted()
            typed.types("x + 2\r")
            assert "before" not in await typed.sees("42")  # nothing twice, and the variables are there
            await typed.prompted()
            typed.types(CTRL_D)
            assert await typed.ends() == 0
        person.__exit__(None, None, None)
    finally:
        await house.close()


@others
async def test_a_machine_that_is_deleted_ends_the_prompt(language: str, tmp_path: Path) -> None:
    async with service() as server, AsyncEverforge(server.token, server.url) as client:
        machine = await client.create("one")
        with person_at(language, environment(server.url, server.token, tmp_path), "one") as person:
            await person.prompted()
            await machine.delete()
            await person.sees("everforge: ", "deleted")
            assert await person.ends() == 3


# --- commands other than repl -----------------------------------------------------------------------------------------------------------------

ON_A_TERMINAL = (  # what is typed as soon as the text behind it is there
    ("machine list", ()),
    ("machine new --name first --tag a=b", ()),
    ("machine list", ()),
    ("machine show first", ()),
    ("machine exec first \"print(1);tell('e', stream='stderr');2\"", ()),
    ("machine exec first 1/0", ()),
    ("machine logs first", ()),
    ("machine delete first", (("[y/N]: ", "n\r"),)),
    ("machine delete first", (("[y/N]: ", CTRL_C),)),
    ("machine delete first", (("[y/N]: ", "what\r"), ("[y/N]: ", "y\r"))),
    ("secret set KEY --host a.example", (("Value: ", "a-value-that-is-hidden\r"),)),
    ("login", (("Token for", "not a token\r"),)),
    ("signup", (("E-mail: ", "\r"), ("E-mail: ", "ada@example.org\r"), ("Account name: ", "Not good\x7f\x7f\x7f\x7f\x7f\r"))),
)


async def answers_on_a_terminal(language: str, folder: Path) -> list[tuple[str, int | None, str]]:
    found: list[tuple[str, int | None, str]] = []
    async with service() as server:
        env = environment(server.url, server.token, folder)
        for line, keys in ON_A_TERMINAL:
            with terminal(env, *shlex.split(line), command=[str(word) for word in program(language).command]) as person:
                for question, answer in keys:
                    await person.sees(question)
                    assert person.child.waitnoecho(60) if "hidden" in answer else True
                    person.types(answer)
                code = await person.ends()
                found.append((line, code, normal(Answer(0, person.shown, ""), {"url": server.url, "home": str(folder)}).out))
    return found


@others
async def test_tables_colours_and_questions_are_the_same_as_pythons(language: str, tmp_path: Path) -> None:
    theirs, ours = [await answers_on_a_terminal(one, tmp_path / one) for one in ("python", language)]
    assert not any("hidden" in shown for _, _, shown in ours)
    for wanted, found in zip(theirs, ours, strict=True):
        assert found == wanted
