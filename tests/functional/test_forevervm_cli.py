"""ForeverVM's command line as published, on a pseudo-terminal, against `everforge serve` on the real engine."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kit.cargo import needs_cargo
from kit.commandserver import CommandServer, command_server
from kit.forevervmcli import Person, command_line, name_in
from kit.proxy import proxy

pytestmark = [
    pytest.mark.gvisor,
    pytest.mark.slow,
    needs_cargo,
    pytest.mark.timeout(2700),  # from nothing, the crate and its dependencies are built first
]
CTRL_C, CTRL_D = "\x03", "\x04"
PASTED = "\x1b[200~{}\x1b[201~"  # what a terminal sends that is pasted into


@pytest.fixture(scope="module")
def command() -> Path:
    return command_line()


@pytest.fixture(scope="module")
def served(command: Path) -> Iterator[CommandServer]:
    """Anybody may sign up: this client has no way to give an invitation."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("EVERFORGE_SIGNUP", "open")
        with command_server() as served:
            yield served


@pytest.fixture
def stranger(command: Path, tmp_path: Path) -> Person:
    return Person(command, tmp_path)


@pytest.fixture
def person(stranger: Person, served: CommandServer) -> Person:
    stranger.configured(served.url, served.token)
    return stranger


@pytest.fixture
def api(served: CommandServer) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=served.url, headers={"Authorization": f"Bearer {served.token}"}, timeout=60) as client:
        yield client


def done(answer: httpx2.Response) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()


# --- who one is --------------------------------------------------------------------------------------------------------------------------------


def test_a_login_is_kept_until_the_logout(served: CommandServer, stranger: Person) -> None:
    assert stranger.says("whoami") == (1, "Error: Not logged in\n")
    status, shown = stranger.logs_in(served.url, served.token)
    assert (status, shown.splitlines()[-1]) == (0, "Logged in as owner")
    assert served.token not in shown
    assert json.loads(stranger.config.read_text()) == {"token": served.token, "server_url": f"{served.url}/"}
    assert stranger.says("login", "--api-base-url", served.url) == (0, "Already logged in as owner\n")
    assert stranger.says("whoami") == (0, f"Logged in to {served.url}/ as owner\n")
    assert stranger.says("logout") == (0, "Successfully logged out\n")
    assert stranger.says("machine", "list") == (1, "Error: Not logged in\n")
    assert stranger.says("logout") == (0, "Not currently logged in\n")


def test_a_wrong_token_is_refused_and_not_kept(served: CommandServer, stranger: Person) -> None:
    status, shown = stranger.logs_in(served.url, "without-a-dot")
    assert (status, shown.splitlines()[-1]) == (1, "Error: Invalid token format")
    status, shown = stranger.logs_in(served.url, "wrong.wrong")
    assert status == 1
    assert shown.splitlines()[-1].startswith("Error: Api error: Api error: { code: Unauthenticated, id: Some(")
    assert not stranger.config.exists()


def test_a_token_that_does_not_hold_any_more_or_of_another_server_is_replaced(served: CommandServer, stranger: Person) -> None:
    for url, told in (
        (served.url, "There is an existing token, but it gives an error"),
        ("http://127.0.0.1:9", "There is an existing token for another"),
    ):
        stranger.configured(url, "wrong.wrong")
        status, shown = stranger.logs_in(served.url, served.token)
        assert status == 0
        assert told in shown
        assert json.loads(stranger.config.read_text())["token"] == served.token


def test_a_sign_up_is_taken_and_what_is_taken_already_is_said(served: CommandServer, stranger: Person) -> None:
    def signs_up(email: str, name: str) -> tuple[int, str]:
        with stranger.at("signup", "--api-base-url", served.url) as screen:
            screen.sees("Enter your email")
            screen.types(f"{email}\r")
            screen.sees("Give your account a name")
            screen.types(f"{name}\r")
            return screen.ends(), screen.shown

    status, shown = signs_up("ada@example.com", "ada-cli")
    assert (status, "Success! Check your email" in shown) == (0, True)
    status, shown = signs_up("other@example.com", "ada-cli")
    assert (status, shown.splitlines()[-1]) == (1, "Error: Account already exists. Please sign up with a different account name.")
    status, shown = signs_up("ada@example.com", "another-cli")
    assert (status, "Error: Email is already signed up" in shown) == (1, True)


# --- machines ----------------------------------------------------------------------------------------------------------------------------------


def test_machines_are_made_with_tags_and_listed_by_them(person: Person, api: httpx2.Client) -> None:
    status, shown = person.says("machine", "new", "--tag", "kind=cli", "--tag", "sum=1+1=2")
    tagged = name_in(shown)
    plain = name_in(person.says("machine", "new")[1])
    assert status == 0
    everything = person.says("machine", "list")[1]
    assert everything.index(plain) < everything.index(tagged)  # the newest first
    found = person.says("machine", "list", "--tag", "kind=cli", "--tag", "sum=1+1=2")[1]
    lines = found.splitlines()
    assert lines[:2] == ["Machines:", tagged]
    assert lines[2].startswith("  Created: ")
    assert lines[2].endswith(" UTC)")
    assert lines[3:6] == ["  Expires: never", "  Status:  idle", "  Running: true"]
    assert sorted(lines[6:8]) == ["  Tag: kind = cli", "  Tag: sum = 1+1=2"]
    assert person.says("machine", "list", "--tag", "kind=cl") == (0, "Machines:\n")
    done(api.post(f"/v1/machine/{tagged}/hibernate"))
    assert "  Running: false\n" in person.says("machine", "list", "--tag", "kind=cli")[1]


def test_the_list_says_which_machine_has_work(person: Person, api: httpx2.Client) -> None:
    name = name_in(person.says("machine", "new", "--tag", "busy=yes")[1])
    done(api.post(f"/v1/machine/{name}/exec", json={"instruction": {"code": "import time; time.sleep(600)", "timeout_seconds": 600}}))
    assert "  Status:  has_work\n" in person.says("machine", "list", "--tag", "busy=yes")[1]


def test_a_tag_without_a_value_and_a_machine_that_is_not_there_are_errors(person: Person) -> None:
    status, shown = person.says("machine", "new", "--tag", "novalue")
    assert (status, "no `=` found in `novalue`" in shown) == (2, True)
    assert person.says("repl", "nobody") == (1, "Error: Error from Tungstenite: HTTP error: 404 Not Found\n")


# --- the prompt --------------------------------------------------------------------------------------------------------------------------------


def test_a_prompt_shows_output_values_and_errors_and_remembers(person: Person) -> None:
    with person.at("machine", "repl") as screen:
        name = name_in(screen.prompted())
        assert screen.runs("print('hello'); x = 41") == "hello\n"
        assert screen.runs("x + 1") == "42\n"
        assert screen.runs("1 / 0") == "Error: ZeroDivisionError: division by zero\n"
        assert screen.runs("import sys; print('complaint ü 中', file=sys.stderr)") == "complaint ü 中\n"
        assert screen.runs("") == ""
        assert "SyntaxError" in screen.runs("x = = 1")
        assert "input() is not available" in screen.runs("input()")
        assert screen.runs(PASTED.format("for i in range(3):\n    print('row', i)\n")) == "row 0\nrow 1\nrow 2\n"
        assert screen.runs("for i in range(60): print(i)") == "".join(f"{i}\n" for i in range(60))  # the client has room for 64
        screen.types(CTRL_C)
        assert screen.ends() == 0
    with person.at("repl", name) as screen:
        assert name_in(screen.prompted()) == name
        assert screen.runs("x") == "41\n"
        screen.types(CTRL_D)
        assert screen.ends() == 0
        assert screen.shown.endswith("Error: EOF\n")


def test_a_prompt_wakes_a_machine_and_its_instructions_have_the_time_that_they_are_given(person: Person, api: httpx2.Client) -> None:
    name = name_in(person.says("machine", "new")[1])
    done(api.post(f"/v1/machine/{name}/exec", json={"instruction": {"code": "kept = 'through the night'"}}))
    done(api.get(f"/v1/machine/{name}/exec/0/result"))
    done(api.post(f"/v1/machine/{name}/hibernate"))
    with person.at("machine", "repl", name, "--instruction-timeout-seconds", "1") as screen:
        screen.prompted()
        assert screen.runs("kept") == "'through the night'\n"
        assert screen.runs("import time; time.sleep(600)") == "Error: Timed out after 1 s\n"
        assert screen.runs("kept") == "'through the night'\n"


def test_ctrl_c_while_an_instruction_runs_ends_the_client_and_not_the_instruction(person: Person, api: httpx2.Client) -> None:
    with person.at("repl") as screen:
        name = name_in(screen.prompted())
        screen.types("import time; print('begun'); time.sleep(1); 'to its end'\r")
        screen.sees("\nbegun")
        screen.types(CTRL_C)
        assert screen.ends() == -signal.SIGINT
    assert done(api.get(f"/v1/machine/{name}/exec/0/result"))["result"]["value"] == "'to its end'"


def test_a_prompt_on_a_machine_that_is_deleted_says_so_and_goes_on(person: Person, api: httpx2.Client) -> None:
    with person.at("repl") as screen:
        name = name_in(screen.prompted())
        assert screen.runs("1") == "1\n"
        done(api.delete(f"/v1/machine/{name}"))
        for _ in range(2):
            assert screen.runs("2") == f"Error: MachineNotFound: machine {name} was deleted\n"
        screen.types(CTRL_C)
        assert screen.ends() == 0


# --- no server ---------------------------------------------------------------------------------------------------------------------------------


def test_without_a_server_every_command_says_so(stranger: Person) -> None:
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        status, shown = stranger.logs_in(url, "some.token")
        assert (status, shown.splitlines()[-1]) == (1, f"Error: Reqwest error: error sending request for url ({url}/v1/whoami)")
        stranger.configured(url, "some.token")
        for words, path in (
            (["whoami"], "whoami"),
            (["machine", "new"], "machine/new"),
            (["machine", "list"], "machine/list"),
            (["repl"], "machine/new"),
        ):
            assert stranger.says(*words) == (1, f"Error: Reqwest error: error sending request for url ({url}/v1/{path})\n")
        assert stranger.says("logout") == (0, "Successfully logged out\n")


async def test_a_prompt_that_is_cut_in_the_middle_of_an_instruction_is_left_with_ctrl_c_and_a_new_one_finds_everything(
    served: CommandServer, person: Person
) -> None:
    """By itself it would wait for ever: this client does not tell its program that the connection is gone."""
    async with proxy(served.url) as wire:
        person.configured(wire.url, served.token)
        with person.at("repl") as screen:
            name = name_in(await asyncio.to_thread(screen.prompted))
            screen.types("import time; print('begun'); time.sleep(1); x = 'still here'\r")
            await asyncio.to_thread(screen.sees, "\nbegun")
            wire.cut()
            screen.types(CTRL_C)
            assert await asyncio.to_thread(screen.ends) == -signal.SIGINT
        with person.at("repl", name) as screen:
            await asyncio.to_thread(screen.prompted)
            assert await asyncio.to_thread(screen.runs, "x") == "'still here'\n"
