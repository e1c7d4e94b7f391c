"""What belongs to a process, in the command lines of all three languages: signals, readers who go, places remembered, log-ins."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from everforge import Everforge, Machine
from kit.commandlines import PYTHON, Answer, Line, ended, home
from kit.commandprograms import all_three, program
from kit.fakeserver import FakeServer, fake_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
HANGS = "print('begun'); hang()"
ENDURES = "print('begun'); endure()"  # also when it is interrupted
INTERRUPTING = "everforge: interrupting; Ctrl-C again leaves at once\n"
ROWS = 40


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    with fake_server() as served:
        yield served


@pytest.fixture
def machine(server: FakeServer) -> Iterator[Machine]:
    with Everforge(server.token, server.url) as client:
        made = client.create()
        yield made
        made.delete()


@pytest.fixture
def env(server: FakeServer, tmp_path: Path) -> Mapping[str, str]:
    return home(tmp_path / "home", EVERFORGE_URL=server.url, EVERFORGE_TOKEN=server.token)


def begun(process: subprocess.Popen[bytes], text: str = "begun") -> None:
    assert process.stdout is not None
    while (line := process.stdout.readline()) != f"{text}\n".encode():
        assert line, ended(process)


@all_three
def test_ctrl_c_interrupts_what_exec_runs_and_waits_for_its_end(language: str, machine: Machine, env: Mapping[str, str], tmp_path: Path) -> None:
    process = program(language).start(Line(("machine", "exec", machine.name, HANGS)), env, tmp_path)
    begun(process)
    process.send_signal(signal.SIGINT)
    assert ended(process) == Answer(130, "", f"{INTERRUPTING}KeyboardInterrupt\n")


@all_three
def test_a_second_ctrl_c_leaves_at_once_and_says_that_it_goes_on(language: str, machine: Machine, env: Mapping[str, str], tmp_path: Path) -> None:
    process = program(language).start(Line(("machine", "exec", machine.name, ENDURES)), env, tmp_path)
    begun(process)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert process.stderr.readline().decode() == INTERRUPTING
    process.send_signal(signal.SIGINT)
    goes_on = (
        f"everforge: instruction 0 of {machine.name} goes on: `everforge machine interrupt {machine.name}` kills it, with the machine's variables\n"
    )
    assert ended(process) == Answer(130, "", goes_on)


@all_three
def test_ctrl_c_ends_what_waits_for_something_else(language: str, machine: Machine, env: Mapping[str, str], tmp_path: Path) -> None:
    machine.run("print('seen')")
    process = program(language).start(Line(("machine", "logs", machine.name, "--follow", "--output")), env, tmp_path)
    begun(process, "seen")
    process.send_signal(signal.SIGINT)
    assert ended(process) == Answer(130, "", "")


@all_three
def test_ctrl_c_interrupts_the_instruction_that_came_through_a_pipe(language: str, machine: Machine, env: Mapping[str, str], tmp_path: Path) -> None:
    process = program(language).start(Line(("repl", machine.name)), env, tmp_path)
    assert process.stdin is not None
    process.stdin.write(f"{HANGS}\nprint('never')\n".encode())
    begun(process)
    process.send_signal(signal.SIGINT)
    assert ended(process) == Answer(130, "", f"{INTERRUPTING}KeyboardInterrupt\n")


@all_three
def test_a_kill_ends_it(language: str, machine: Machine, env: Mapping[str, str], tmp_path: Path) -> None:
    process = program(language).start(Line(("machine", "exec", machine.name, HANGS)), env, tmp_path)
    begun(process)
    process.terminate()
    assert ended(process).code == 143


@all_three
def test_a_reader_who_goes_ends_it_quietly(language: str, machine: Machine, env: Mapping[str, str], tmp_path: Path) -> None:
    """As `| head -1` does."""
    process = program(language).start(Line(("machine", "exec", machine.name, "print('row\\n' * 100_000)")), env, tmp_path)
    begun(process, "row")
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    assert process.stderr is not None
    said = process.stderr.read()
    assert (process.wait(60), said) == (141, b"")


@all_three
def test_a_full_disk_is_told(language: str, env: Mapping[str, str], tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        words = [*map(str, program(language).command), "machine", "--help"]
        done = subprocess.run(words, env=dict(env), cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "everforge: the answer could not be written: no space left on device\n")


# --- files of this computer -------------------------------------------------------------------------------------------------------------------


@all_three
def test_what_is_no_file_is_never_replaced_by_one(language: str, machine: Machine, env: Mapping[str, str], tmp_path: Path) -> None:
    """Least of all a device, or what /dev/stdout is: a link to what the process has open."""
    machine.files.write("came", "from the machine")
    place = tmp_path / "place"
    place.mkdir()
    os.mkfifo(place / "pipe")
    (place / "link").symlink_to("pipe")
    (place / "opened").symlink_to("/proc/self/exe")
    for name in ("pipe", "link", "opened"):
        line = Line(("machine", "files", "get", machine.name, "came", name))
        assert program(language).run(line, env, place) == Answer(3, "", f"everforge: {name}: file exists\n")
    assert sorted(path.name for path in place.iterdir()) == ["link", "opened", "pipe"]
    assert ((place / "pipe").is_fifo(), (place / "link").is_symlink(), (place / "opened").is_symlink()) == (True, True, True)


@all_three
def test_a_file_that_cannot_be_made_has_the_name_that_it_was_given(language: str, machine: Machine, env: Mapping[str, str], tmp_path: Path) -> None:
    machine.files.write("came", "from the machine")
    (tmp_path / "folder" / "came").mkdir(parents=True)
    (tmp_path / "file").touch()
    said = {"no/where": "no/where: no such file or directory", "file/x": "file/x: not a directory", "folder": "folder/came: is a directory"}
    for name, sentence in said.items():
        line = Line(("machine", "files", "get", machine.name, "came", name))
        assert program(language).run(line, env, tmp_path) == Answer(3, "", f"everforge: {sentence}\n")
    assert not list(tmp_path.rglob("*.part"))


@all_three
def test_a_standard_input_that_is_closed_is_no_empty_one(language: str, machine: Machine, env: Mapping[str, str], tmp_path: Path) -> None:
    lines = {"CODE": ("machine exec", machine.name, "-"), "LOCAL": ("machine files put", machine.name, "-", "there")}
    for hint, (command, *words) in lines.items():
        shell = ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *map(str, program(language).command), *command.split(), *words]
        done = subprocess.run(shell, env=dict(env), cwd=tmp_path, capture_output=True, text=True, timeout=60)
        sentence = f"everforge: invalid value for {hint}: stdin is closed: see `everforge {command} --help`\n"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", sentence)
        with open(os.devnull) as nothing:
            empty = subprocess.run([*shell[:2], 'exec "$@"', *shell[3:]], env=dict(env), cwd=tmp_path, stdin=nothing, capture_output=True, timeout=60)
        assert empty.returncode == 0, empty.stderr
    assert not machine.files.read("there")


# --- a place in the tape ----------------------------------------------------------------------------------------------------------------------


@all_three
def test_a_place_in_the_tape_is_remembered_in_a_file_that_all_languages_read(
    language: str, machine: Machine, env: Mapping[str, str], tmp_path: Path
) -> None:
    cursor = tmp_path / "cursor"
    line = Line(("machine", "logs", machine.name, "--output", "--cursor-file", str(cursor)))
    machine.run("tell('a')\ntell('b', partial=True)")
    assert program(language).run(line, env, tmp_path) == Answer(0, "a\nb", "")
    assert program(language).run(line, env, tmp_path) == Answer(0, "", "")
    machine.run("print('c')")
    after_python = PYTHON.run(line, env, tmp_path)
    machine.run("print('d')")
    assert (after_python.out.strip(), program(language).run(line, env, tmp_path)) == ("c", Answer(0, "d\n", ""))
    assert cursor.stat().st_mode & 0o777 == 0o600


@all_three
def test_a_reader_who_is_killed_over_and_over_misses_nothing_and_repeats_nothing(
    language: str, machine: Machine, env: Mapping[str, str], tmp_path: Path
) -> None:
    line = Line(("machine", "logs", machine.name, "--follow", "--output", "--cursor-file", str(tmp_path / "cursor")))
    machine.run("tell(*(f'row {i}' for i in range(10)))")
    printed = ""
    for last in range(9, ROWS, 10):
        with subprocess.Popen(
            [*map(str, program(language).command), *line.words], env=dict(env), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=tmp_path
        ) as process:
            assert process.stdout is not None
            while f"row {last}\n" not in printed:
                printed += os.read(process.stdout.fileno(), 4096).decode()
            machine.run(f"tell(*(f'row {{i}}' for i in range({last + 1}, {last + 11})))")  # some of it may come before the end, and some not
            process.kill()
            printed += process.stdout.read().decode()
    rows = printed.splitlines()
    assert rows[:ROWS] == [f"row {i}" for i in range(len(rows))][:ROWS]
    assert len(rows) >= ROWS


@all_three
def test_a_file_that_is_something_else_is_no_cursor_file(language: str, machine: Machine, env: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    said = {"mine": "is something else than a cursor file: take another name", "no/where": "cannot be written: no such file or directory"}
    for name, sentence in said.items():
        line = Line(("machine", "logs", machine.name, "--cursor-file", name))
        assert program(language).run(line, env, tmp_path) == Answer(3, "", f"everforge: {name} {sentence}\n")
    assert (tmp_path / "mine").read_text() == "mine"


# --- a log-in ---------------------------------------------------------------------------------------------------------------------------------


@all_three
def test_a_log_in_is_kept_for_its_owner_alone_used_and_forgotten(language: str, server: FakeServer, tmp_path: Path) -> None:
    stranger, folder = home(tmp_path / "home"), tmp_path / "home"
    config = folder / "config" / "everforge" / "config.json"

    def run(*words: str, stdin: str = "") -> Answer:
        return program(language).run(Line(words, stdin.encode()), stranger, folder)

    assert run("login", "--api-base-url", server.url, stdin=f"{server.token}\n") == Answer(0, f"logged in as owner at {server.url}\n", "")
    assert config.stat().st_mode & 0o777 == 0o600
    assert json.loads(config.read_text()) == {"token": server.token, "server_url": server.url}
    assert f"token from\t{config}\n" in run("whoami").out
    config.chmod(0o644)
    assert run("whoami") == Answer(3, "", f"everforge: {config} holds a token, and others can read it: chmod 600 {config}\n")
    config.chmod(0o600)
    assert run("logout") == Answer(0, "logged out\n", "")
    assert run("whoami").code == 4


@all_three
def test_a_log_in_with_a_link_works_once(language: str, server: FakeServer, env: Mapping[str, str], tmp_path: Path) -> None:
    link = program(language).run(Line(("token", "link")), env, tmp_path).out.strip()
    stranger = home(tmp_path / "stranger")
    assert program(language).run(Line(("login", link)), stranger, tmp_path) == Answer(0, f"logged in as owner at {server.url}\n", "")
    assert program(language).run(Line(("login", link)), stranger, tmp_path).code == 3


@all_three
def test_an_account_is_made_and_logged_in(language: str, server: FakeServer, tmp_path: Path) -> None:
    stranger = home(tmp_path / "home")
    line = Line(("signup", "--email", f"{language}@example.org", "--account-name", language, "--api-base-url", server.url))
    answer = program(language).run(line, stranger, tmp_path)
    assert (answer.code, answer.err) == (0, f"everforge: this is the token of {language}, shown this once; you are logged in\n")
    assert json.loads((tmp_path / "home/config/everforge/config.json").read_text())["token"] == answer.out.strip()


@all_three
@pytest.mark.parametrize(
    ("place", "reason"), [("/proc/1", "no such file or directory"), ("hello.txt", "not a directory"), ("link", "too many levels of symbolic links")]
)
def test_a_log_in_that_cannot_be_kept_says_why(language: str, place: str, reason: str, server: FakeServer, tmp_path: Path) -> None:
    folder = tmp_path / "home"
    stranger = {name: value for name, value in home(folder).items() if name != "XDG_CONFIG_HOME"} | {"HOME": str(folder / place)}
    (folder / "link").symlink_to("link")
    line = Line(("login", "--api-base-url", server.url, "--token", server.token))
    sentence = f"everforge: {folder / place}/.config/everforge/config.json: {reason}\n"
    assert program(language).run(line, stranger, tmp_path) == Answer(3, "", sentence)
