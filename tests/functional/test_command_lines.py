"""The command lines in TypeScript and Rust, side by side with Python's: to the same words the same answers, on stdout and on stderr, and the same exit code.

The words are those of sdk/contract/command_lines.json. Each language has a server of its own, on the engine of tests, so that what one changes no other sees.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from everforge import Everforge, __version__
from kit.commandlines import LINES, Answer, Line, Program, differences, ended, home, normal, python_answers
from kit.commandprograms import all_three, others, program
from kit.fakeserver import FakeServer, fake_server
from kit.scripted import answering
from kit.sdks import RUST

DATA: dict[str, Any] = json.loads(LINES.read_text())
COMMANDS = json.loads((RUST.parent / "src" / "generated" / "commands.json").read_text())["commands"]
AT_ONCE = 8  # of which some wait for a server that is away
ALONE_PARTS = 3
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


# --- lines that ask no server -----------------------------------------------------------------------------------------------------------------

REFUSED, ANSWERED = [Line.read(one) for one in DATA["refused"]], [Line.read(one) for one in DATA["answered"]]
HELP = [Line((*command["path"], "--help")) for command in COMMANDS if command["path"]]
ALONE = [*REFUSED, *ANSWERED, *HELP]


@pytest.mark.parametrize("name", ["refused", "answered"])
def test_what_asks_no_server_is_refused_or_answered(course: Course, name: str) -> None:
    answers = course.of("python").alone()
    assert {answer.code for answer in (answers[: len(REFUSED)] if name == "refused" else answers[len(REFUSED) :])} == {2 if name == "refused" else 0}


@others
def test_lines_that_ask_no_server(language: str, course: Course) -> None:
    found = differences(ALONE, course.of("python").alone(), course.of(language).alone())
    assert not found, found


@others
def test_the_first_page_has_the_commands_that_there_are(language: str, tmp_path: Path) -> None:
    """Python's has more: what runs on the server's own computer."""
    env = home(tmp_path / "home")
    [whole] = [command["help"] for command in COMMANDS if not command["path"]]
    for words in ((), ("--help",), ("-h",)):
        assert program(language).run(Line(words), env, tmp_path / "home") == Answer(0, whole, "")


@others
def test_commands_of_the_servers_own_computer_say_where_they_are(language: str, tmp_path: Path) -> None:
    env = home(tmp_path / "home")
    for words in (("serve",), ("serve", "--port", "0"), ("mcp", "install", "zed"), ("doctor",)):
        sentence = f"`everforge {words[0]}` comes with the Python package alone, as the server does; `pip install everforge` installs it"
        assert program(language).run(Line(words), env, tmp_path / "home") == Answer(2, "", f"everforge: {sentence}: see `everforge --help`\n")


# --- sessions ---------------------------------------------------------------------------------------------------------------------------------

SESSIONS = {name: [Line.read(one) for part in parts.values() for one in part] for name, parts in DATA["sessions"].items()}


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_has_good_and_bad_lines(course: Course, name: str) -> None:
    assert {answer.code for answer in course.of("python").session(name)} == {0, 1, 2, 3}


@pytest.mark.parametrize("name", SESSIONS)
@others
def test_a_session(language: str, name: str, course: Course) -> None:
    found = differences(SESSIONS[name], course.of("python").session(name), course.of(language).session(name))
    assert not found, found


# --- circumstances ----------------------------------------------------------------------------------------------------------------------------


def test_bad_circumstances_are_told_by_python_as_it_is_written_down(course: Course) -> None:
    for at, one in enumerate(course.circumstances):
        one.asserted(course.of("python").circumstance(at))


@others
def test_bad_circumstances_are_told_in_the_same_sentence(language: str, course: Course) -> None:
    found: list[str] = []
    for at, one in enumerate(course.circumstances):
        told = differences(one.lines, course.of("python").circumstance(at), course.of(language).circumstance(at))
        found += [f"--- {one.found['when']}\n{told}"] if told else []
    assert not found, "\n\n".join(found)


@dataclass(frozen=True)
class Place:
    """A person with a server."""

    server: FakeServer
    folder: Path

    @property
    def env(self) -> dict[str, str]:
        return home(self.folder, EVERFORGE_URL=self.server.url, EVERFORGE_TOKEN=self.server.token)

    def clean(self, answers: list[Answer]) -> list[Answer]:
        return [normal(answer, {"url": self.server.url, "home": str(self.folder)}) for answer in answers]


@dataclass(frozen=True)
class Circumstance:
    """Who answers, and what a person has."""

    found: dict[str, Any]
    url: str

    @property
    def lines(self) -> list[Line]:
        lines = DATA["anything"] if self.found["lines"] == "anything" else self.found["lines"]
        return [Line.read(json.loads(self.filled(json.dumps(one)))) for one in lines]

    def filled(self, text: str) -> str:
        return text.replace("${url}", self.url).replace("${version}", __version__)

    def env(self, folder: Path) -> dict[str, str]:
        given = {"EVERFORGE_URL": self.url, "EVERFORGE_TOKEN": self.found["token"]} if "token" in self.found else self.found.get("env", {})
        env = home(folder, **given)
        if "config" in self.found:
            config = folder / "config" / "everforge" / "config.json"
            config.parent.mkdir(parents=True)
            config.write_text(self.found["config"])
            config.chmod(int(self.found.get("mode", "600"), 8))
        return env

    def clean(self, answers: list[Answer], folder: Path) -> list[Answer]:
        return [normal(answer, {"url": self.url, "home": str(folder)}) for answer in answers]

    def asserted(self, answers: list[Answer]) -> None:
        """What must be said, where that is written down."""
        for line, answer in zip(self.lines, answers, strict=True):
            said = json.loads(answer.err)["message"] if "--json" in line.words and "says" in self.found else answer.err
            assert answer.code == self.found.get("exit", answer.code), (self.found["when"], str(line), answer)
            assert self.found.get("says", "").replace("${url}", "<url>").replace("${version}", __version__) in said, (
                self.found["when"],
                str(line),
                answer,
            )


# --- all of it, at once -----------------------------------------------------------------------------------------------------------------------


class Answers:
    """Of one language, to everything: begun at once, since much of it is waiting, and asked for by each test."""

    def __init__(self, course: Course, language: str) -> None:
        self._language, self._folder = language, course.folder / language
        self._circumstances = [course.pool.submit(self._in_circumstance, at, one) for at, one in enumerate(course.circumstances)]
        self._sessions = {name: course.pool.submit(self._in_session, name) for name in SESSIONS}
        parts = [ALONE] if language == "python" else [ALONE[at::ALONE_PARTS] for at in range(ALONE_PARTS)]
        self._alone = [course.pool.submit(self._without_a_server, at, part) for at, part in enumerate(parts)]

    def alone(self) -> list[Answer]:
        parts = [part.result() for part in self._alone]
        return [parts[at % len(parts)][at // len(parts)] for at in range(len(ALONE))]

    def session(self, name: str) -> list[Answer]:
        return self._sessions[name].result()

    def circumstance(self, at: int) -> list[Answer]:
        return self._circumstances[at].result()

    def _answers(self, lines: list[Line], env: dict[str, str], folder: Path) -> list[Answer]:
        if self._language == "python":
            return python_answers(lines, env, folder)
        return [program(self._language).run(line, env, folder) for line in lines]

    def _without_a_server(self, at: int, lines: list[Line]) -> list[Answer]:
        folder = self._folder / f"alone-{at}"
        return self._answers(lines, home(folder), folder)

    def _in_session(self, name: str) -> list[Answer]:
        with fake_server() as server:
            place = Place(server, self._folder / name.split()[0])
            return place.clean(self._answers(SESSIONS[name], place.env, place.folder))

    def _in_circumstance(self, at: int, one: Circumstance) -> list[Answer]:
        folder = self._folder / f"circumstance-{at}"
        return one.clean(self._answers(one.lines, one.env(folder), folder), folder)


class Course:
    def __init__(self, pool: ThreadPoolExecutor, circumstances: list[Circumstance], folder: Path) -> None:
        self.pool, self.circumstances, self.folder = pool, circumstances, folder
        self._answers: dict[str, Answers] = {}

    def of(self, language: str) -> Answers:
        if language not in self._answers:
            program(language)  # built first, and once
            self._answers[language] = Answers(self, language)
        return self._answers[language]


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    with ExitStack() as stack:
        nobody = stack.enter_context(socket.socket())
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        urls = {"nobody": f"http://127.0.0.1:{nobody.getsockname()[1]}", "server": stack.enter_context(fake_server()).url, "": ""}
        found: list[Circumstance] = []
        for one in DATA["circumstances"]:
            script = json.loads(json.dumps(one.get("answers")).replace("${version}", __version__))
            found.append(Circumstance(one, stack.enter_context(answering(script)) if script else urls[one.get("at", "")]))
        pool = stack.enter_context(ThreadPoolExecutor(AT_ONCE))
        yield Course(pool, found, tmp_path_factory.mktemp("course"))
        pool.shutdown(cancel_futures=True)


# --- a machine that is deleted meanwhile ------------------------------------------------------------------------------------------------------

LONG = "print('begun'); hang()"


@dataclass(frozen=True)
class Watcher:
    """Somebody who waits for what such a machine runs, and hears that it was deleted: by how the instruction ended, or, where that came too late, as such."""

    line: Line
    codes: dict[str, int]  # by what is said
    out: str = "begun\n"


CANCELLED = "cancelled: the machine was deleted\n"
WATCHERS = {
    "exec": Watcher(Line(("machine", "exec", "m-exec", LONG)), {CANCELLED: 130, "everforge: m-exec was deleted before instruction 0 ended\n": 3}),
    "repl": Watcher(Line(("repl", "m-repl"), f"{LONG}\n".encode()), {CANCELLED: 1, "everforge: the machine was deleted\n": 3}),
    "logs": Watcher(
        Line(("machine", "logs", "m-logs", "--follow")),
        {"": 0, "everforge: connection lost, reconnecting...\n": 0},
        f">>> {LONG}\nbegun\n{CANCELLED}",
    ),
}


def deleted_meanwhile(command: Program, name: str, server: FakeServer, folder: Path) -> Answer:
    env = Place(server, folder).env
    with Everforge(server.token, server.url) as client:
        machine = client.create(f"m-{name}")
        if name == "logs":
            machine.exec(LONG)
        process = command.start(WATCHERS[name].line, env, folder)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(WATCHERS[name].line.stdin)
        process.stdin.close()
        process.stdin = None
        begun = b""
        while not begun.endswith(b"begun\n"):  # it is there, and listens
            line = process.stdout.readline()
            assert line, ended(process)
            begun += line
        machine.delete()
    answer = ended(process)
    return Answer(answer.code, begun.decode() + answer.out, answer.err)


@all_three
def test_a_machine_that_is_deleted_meanwhile(language: str, tmp_path: Path) -> None:
    with fake_server() as server, ThreadPoolExecutor(len(WATCHERS)) as pool:
        answers = pool.map(lambda name: deleted_meanwhile(program(language), name, server, tmp_path / name), WATCHERS)
        for watcher, answer in zip(WATCHERS.values(), answers, strict=True):
            assert answer == Answer(watcher.codes.get(answer.err, -1), watcher.out, answer.err), str(watcher.line)
