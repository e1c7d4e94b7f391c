"""`everforge egress`, `everforge secret`, and what `everforge serve` is told to open: for people and for programs."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import everforge.server.__main__
from everforge.server.__main__ import main
from everforge.store.base import MachineQuery
from everforge.store.egress import AttemptRecord
from kit.service import Running

from .conftest import Command, Done

VALUE = "a-value-that-nobody-prints"


@pytest.fixture
def name(everforge: Command) -> Iterator[str]:
    """A machine that reaches nothing yet."""
    made = everforge("machine", "new", "--egress", "none").out.strip()
    yield made
    everforge("machine", "delete", made)


@pytest.fixture
def default(everforge: Command) -> Iterator[None]:
    """The account's default is the server's again, for those who come after."""
    yield
    assert everforge("egress", "default").out == "packages\n"


@pytest.fixture
def secrets(everforge: Command) -> Iterator[None]:
    yield
    for one in everforge("secret", "list", "--json").json:
        everforge("secret", "delete", one["name"])


def refused(done: Done, *words: str) -> None:
    """One sentence for people, nothing for a pipe."""
    assert (done.code, done.out) == (3, "")
    assert all(word in done.sentence for word in words), done.sentence


# --- policies ----------------------------------------------------------------------------------------------------------------------------------


def test_a_machines_policy_is_shown_and_changed_and_each_change_tells_what_holds_now(everforge: Command, name: str) -> None:
    assert everforge("egress", "show", name).out == "none\n"
    assert everforge("egress", "allow", name, "API.example.com", "*.example.org").out == "list\n  api.example.com\n  *.example.org\n"
    assert everforge("egress", "deny", name, "*.example.org").out == "list\n  api.example.com\n"
    assert everforge("egress", "set", name, "public").out == "public\n  api.example.com\n"
    assert everforge("egress", "show", name).out == "public\n  api.example.com\n"
    assert everforge("egress", "set", name, "none").out == "none\n"


def test_whoever_closes_a_machine_is_told_which_rules_went(everforge: Command, name: str) -> None:
    everforge("egress", "allow", name, "api.example.com", "*.example.org")
    kept = everforge("egress", "set", name, "packages")
    assert (kept.out, kept.err) == ("packages\n  api.example.com\n  *.example.org\n", "")
    closed = everforge("egress", "set", name, "none")
    assert (closed.code, closed.out, closed.sentence) == (0, "none\n", "everforge: 2 rules dropped: api.example.com *.example.org\n")
    assert everforge("egress", "allow", name, "new.example").out == "list\n  new.example\n"
    assert everforge("egress", "set", name, "none").sentence == "everforge: 1 rule dropped: new.example\n"
    assert everforge("egress", "set", name, "none").err == ""


def test_programs_are_told_the_policy_as_json(everforge: Command, name: str) -> None:
    for words, told in (
        (["allow", name, "a.example", "tcp://db.example:5432"], ("list", ["a.example", "tcp://db.example:5432"])),
        (["deny", name, "a.example"], ("list", ["tcp://db.example:5432"])),
        (["set", name, "packages"], ("packages", ["tcp://db.example:5432"])),
        (["show", name], ("packages", ["tcp://db.example:5432"])),
    ):
        assert everforge("egress", *words, "--json").json == {"egress": told[0], "egress_allow": told[1]}


def test_what_cannot_be_is_refused_in_one_sentence_and_changes_nothing(everforge: Command, name: str) -> None:
    everforge("egress", "allow", name, "api.example.com")
    refused(everforge("egress", "allow", name, "ok.example", "a b"), "'a b' is not a rule")
    refused(everforge("egress", "allow", name, "tcp://db.example"), "needs one port")
    refused(everforge("egress", "deny", name, "other.example"), "there is no rule other.example")
    assert everforge("egress", "set", name, "all").code == 2
    refused(everforge("machine", "new", "--name", "never-made", "--egress", "none", "--allow", "api.example.com"), "take `list`")
    assert everforge("egress", "show", name).out == "list\n  api.example.com\n"
    assert "never-made" not in everforge("machine", "list").out


@pytest.mark.parametrize("words", [["show"], ["set", "none"], ["allow", "a.example"], ["deny", "a.example"], ["log"]])
def test_a_machine_that_is_not_there_is_said_not_to_be(everforge: Command, words: list[str]) -> None:
    refused(everforge("egress", words[0], "nobody", *words[1:]), "nobody")


@pytest.mark.parametrize("words", [["allow"], ["allow", "one"], ["deny", "one"], ["set", "one"], ["log"], ["log", "one", "--limit", "0"]])
def test_a_command_that_lacks_a_word_is_a_mistake_of_usage(everforge: Command, words: list[str]) -> None:
    assert everforge("egress", *words).code == 2


def test_a_machine_is_made_with_its_policy(everforge: Command) -> None:
    made = everforge("machine", "new", "--egress", "list", "--allow", "api.example.com", "--allow", "Example.org:8443").out.strip()
    assert everforge("egress", "show", made).out == "list\n  api.example.com\n  example.org:8443\n"
    everforge("machine", "delete", made)
    refused(everforge("machine", "new", "--allow", "a/b"), "is not a rule")


def test_the_default_is_for_new_machines_until_it_is_the_servers_again(everforge: Command, name: str, default: None) -> None:
    assert everforge("egress", "show").out == "packages\n"
    assert everforge("egress", "default", "list", "--allow", "api.example.com").out == "list\n  api.example.com\n"
    assert everforge("egress", "show", "--json").json == {"egress": "list", "egress_allow": ["api.example.com"]}
    made = everforge("machine", "new").out.strip()
    assert everforge("egress", "show", made).out == "list\n  api.example.com\n"
    assert everforge("egress", "show", name).out == "none\n"  # those that are there stay as they are
    assert everforge("egress", "default", "everything").code == 2
    refused(everforge("egress", "default", "list", "--allow", "a b"))
    assert everforge("egress", "show").out == "list\n  api.example.com\n"
    assert everforge("egress", "default", "--json").json == {"egress": "packages", "egress_allow": []}
    everforge("machine", "delete", made)


# --- the log -----------------------------------------------------------------------------------------------------------------------------------


def test_the_log_is_told_newest_first_as_much_as_is_asked_for(everforge: Command, server: Running, name: str) -> None:
    assert everforge("egress", "log", name).out == ""
    noted(
        server,
        name,
        {"host": "api.example.com", "path": "/v1/items", "verdict": "allowed", "allowed_by": "rule api.example.com", "secrets": "API_KEY OTHER"},
        {"host": "evil.example", "verdict": "refused", "why": "the egress policy refuses it\x1b[2J"},
        {"host": "gone.example", "verdict": "failed", "why": "no address is known", "sent_bytes": 2048},
    )
    rows = [line.split("\t") for line in everforge("egress", "log", name).out.splitlines()]
    assert [row[1:3] for row in rows] == [
        ["failed", "GET gone.example:443/"],
        ["refused", "GET evil.example:443/"],
        ["allowed", "GET api.example.com:443/v1/items"],
    ]
    whys = [row[5] for row in rows]
    assert whys == [
        "no address is known",
        "the egress policy refuses it\\x1b[2J",
        "rule api.example.com, with API_KEY OTHER",
    ]  # no terminal obeys a machine
    assert [line.split("\t")[1] for line in everforge("egress", "log", name, "--limit", "2").out.splitlines()] == ["failed", "refused"]
    [only] = everforge("egress", "log", name, "--refused", "--json").json
    assert (only["host"], only["verdict"], only["secrets"]) == ("evil.example", "refused", [])
    [newest, *_, oldest] = everforge("egress", "log", name, "--json").json
    assert (newest["host"], newest["sent_bytes"], oldest["secrets"]) == ("gone.example", 2048, ["API_KEY", "OTHER"])


def noted(server: Running, name: str, *attempts: dict[str, Any]) -> None:
    """Machines of the fake engine have no way out: what one has tried is put where its door would put it."""
    assert server.house is not None
    store = server.house.store
    [record] = [one for one in asyncio.run(store.machines(MachineQuery())) if one.name == name]
    told: dict[str, Any] = {
        "port": 443, "speech": "tls", "method": "GET", "path": "/", "why": "", "allowed_by": "", "address": "", "sent_bytes": 0, "received_bytes": 0,
        "secrets": "", "began_at": 0.0, "ended_at": None,
    }  # fmt: skip
    records = [AttemptRecord(machine=record.id, number=number, **{**told, **one}) for number, one in enumerate(attempts, 1)]
    asyncio.run(store.egress.note(records, 100))


# --- secrets -----------------------------------------------------------------------------------------------------------------------------------


def test_a_secret_is_set_listed_and_deleted_and_no_command_prints_its_value(everforge: Command, secrets: None) -> None:
    said: list[Done] = []

    def told(*words: str, stdin: str = "") -> Done:
        said.append(everforge(*words, stdin=stdin))
        return said[-1]

    made = told("secret", "set", "API_KEY", "--host", "api.example.com", stdin=f"{VALUE}\n")
    placeholder = made.out.split()[2]
    assert placeholder.startswith("everforge-secret-")
    assert made.out == f"Machines find {placeholder} in $API_KEY; the value goes to api.example.com and nowhere else.\n"
    assert told("secret", "list").out.split("\t")[:2] == ["API_KEY", "api.example.com"]
    [shown] = told("secret", "list", "--json").json
    assert (shown["name"], shown["placeholder"], shown["hosts"], shown["header"], shown["places"]) == (
        "API_KEY",
        placeholder,
        ["api.example.com"],
        None,
        [],
    )
    again = told("secret", "set", "API_KEY", "--host", "other.example", "--json", stdin=f"{VALUE}-2").json
    assert (again["placeholder"], again["hosts"]) == (placeholder, ["other.example"])  # machines have it already
    assert told("audit", "--action", "secret.set", "--json").json
    told("egress", "show")
    told("machine", "list", "--json")
    assert told("secret", "delete", "API_KEY").out == "deleted API_KEY\n"
    assert told("secret", "list").out == ""
    refused(told("secret", "delete", "API_KEY"), "API_KEY")
    assert not [done for done in said if VALUE in done.out + done.err]


def test_a_secret_may_have_several_hosts_a_header_and_places(everforge: Command, secrets: None) -> None:
    words = ["--host", "API.example.com", "--host", "api.example.com:8443", "--header", "Authorization: Bearer {}", "--into", "url", "--into", "body"]
    made = everforge("secret", "set", "API_KEY", *words, "--json", stdin=VALUE).json
    assert (made["hosts"], made["header"]) == (["api.example.com", "api.example.com:8443"], "Authorization: Bearer {}")
    assert made["places"] == ["body", "url"]
    assert "value" not in made
    assert everforge("secret", "list").out.split("\t")[:3] == ["API_KEY", "api.example.com api.example.com:8443", "Authorization: Bearer {}"]
    assert everforge("secret", "delete", "API_KEY", "--json").json == {"deleted": True}


@pytest.mark.parametrize(
    "value", ["", "\n", "short-7", "x" * 4097, "two\nlines of it", " before-it", "behind-it ", "tab\tinside", "ümlaut-inside", "nul\0inside"]
)
def test_a_value_that_is_too_short_too_long_or_odd_is_refused_and_not_repeated(everforge: Command, value: str) -> None:
    done = everforge("secret", "set", "API_KEY", "--host", "api.example.com", stdin=value)
    refused(done, "8 to 4096 characters of ASCII")
    if len(value) > 3:
        assert value not in done.err
    assert everforge("secret", "list").out == ""


def test_a_value_that_is_no_text_is_refused_and_the_old_one_stays(everforge: Command, secrets: None) -> None:
    before = everforge("secret", "set", "API_KEY", "--host", "api.example.com", "--json", stdin=VALUE).json
    done = everforge("secret", "set", "API_KEY", "--host", "api.example.com", stdin=b"\xff\xfe\0a-key-in-bytes")
    refused(done, "not text", "8 to 4096 characters of ASCII", "base64")
    assert "a-key" not in done.err
    assert everforge("secret", "list", "--json").json == [before]


@pytest.mark.parametrize("name", ["bad/../name", "../API_KEY", "API_KEY/", "/", "..", ""])
def test_what_cannot_be_a_secrets_name_is_said_not_to_be_and_nothing_is_deleted(everforge: Command, secrets: None, name: str) -> None:
    everforge("secret", "set", "API_KEY", "--host", "api.example.com", stdin=VALUE)
    refused(everforge("secret", "delete", name), f"{name!r} is not a secret's name", "letters, digits and _")
    assert everforge("secret", "list").out.startswith("API_KEY\t")


def test_one_end_of_line_behind_a_value_is_not_part_of_it(everforge: Command, secrets: None) -> None:
    """As a file has it: 8 characters fit, and 7 with an end of line do not."""
    assert everforge("secret", "set", "API_KEY", "--host", "api.example.com", stdin="12345678\r\n").code == 0
    refused(everforge("secret", "set", "API_KEY", "--host", "api.example.com", stdin="1234567\n"))


@pytest.mark.parametrize(
    ("name", "words", "why"),
    [
        ("API-KEY", ["--host", "api.example.com"], "environment variable"),
        ("1KEY", ["--host", "api.example.com"], "environment variable"),
        ("K" * 65, ["--host", "api.example.com"], "environment variable"),
        ("API_KEY", ["--host", "*.example.com"], "is not a host"),
        ("API_KEY", ["--host", "https://api.example.com"], "is not a host"),
        ("API_KEY", ["--host", "api.example.com:0"], "is not a host"),
        ("API_KEY", ["--host", ""], "is not a host"),
        ("API_KEY", ["--host", "api.example.com", "--header", "Authorization: Bearer"], "where the value goes"),
        ("API_KEY", ["--host", "api.example.com", "--header", "Bearer {}"], "where the value goes"),
        ("API_KEY", ["--host", "api.example.com", "--header", "Host: {}"], "the header Host says how a request is carried"),
        ("API_KEY", ["--host", "api.example.com", "--header", "transfer-encoding: {}"], "take another, such as `Authorization: Bearer {}`"),
        ("bad/../name", ["--host", "api.example.com"], "'bad/../name' is not a secret's name"),
        ("API_KEY", ["--host", "api.example.com", "--header", "X: {}\r\nY: z"], "where the value goes"),
        ("API_KEY", [word for n in range(21) for word in ("--host", f"h{n}.example")], "1 to 20 hosts"),
    ],
)
def test_a_secret_that_cannot_be_is_refused_in_one_sentence(everforge: Command, name: str, words: list[str], why: str) -> None:
    done = everforge("secret", "set", name, *words, stdin=VALUE)
    refused(done, why)
    assert VALUE not in done.err
    assert everforge("secret", "list").out == ""


def test_a_secret_without_a_host_is_a_mistake_of_usage(everforge: Command) -> None:
    assert everforge("secret", "set", "API_KEY", stdin=VALUE).code == 2


# --- what the server is told to open -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def become(stranger: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """`everforge serve` with these words becomes the server's own program: how that ends with them, or with `instead` of the word serve."""
    became: list[list[str]] = []

    def execv(_: str, words: list[str]) -> None:
        became.append(words)

    def serve(*_: object, **more: object) -> int:
        raise AssertionError("a server would have begun")

    monkeypatch.setattr(os, "execv", execv)
    monkeypatch.setattr(everforge.server.__main__, "_serve", serve)

    def become(*words: str, instead: tuple[str, ...] = ("serve",)) -> Done:
        assert stranger("serve", *words).code == 0
        python, *start, command = (given := became.pop())[:4]
        assert (python, start, command) == (sys.executable, ["-m", "everforge.server"], "serve")
        code = main([*instead, *given[4:]])
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return become


def test_hosts_that_serve_shall_open_reach_its_settings(become: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> None:
    def settings(*words: str) -> dict[str, tuple[Any, str]]:
        return {one["name"]: (one["value"], one["source"]) for one in become(*words, instead=("settings", "--json")).json}

    told = settings("--egress", "list", "--allow-host", "127.0.0.1:9000", "--allow-host", "db.example:5432")
    assert told["allow_hosts"] == (["127.0.0.1:9000", "db.example:5432"], "flag")
    assert told["egress"] == ("list", "flag")
    assert settings()["allow_hosts"] == ([], "default")
    monkeypatch.setenv("EVERFORGE_ALLOW_HOSTS", "127.0.0.1:1, 127.0.0.1:2")
    assert settings()["allow_hosts"] == (["127.0.0.1:1", "127.0.0.1:2"], "environment")
    assert settings("--allow-host", "127.0.0.1:3")["allow_hosts"] == (["127.0.0.1:3"], "flag")


@pytest.mark.parametrize("place", ["127.0.0.1", "127.0.0.1:*", "*:9000", "10.0.0.0/8:80", "http://127.0.0.1:9000", ""])
def test_serve_with_a_place_that_is_none_ends_with_one_sentence(become: Callable[..., Done], place: str) -> None:
    refused(become("--port", "0", "--allow-host", "127.0.0.1:9000", "--allow-host", place), repr(place), "name one host and one port")


def test_serve_with_a_policy_that_is_none_ends_with_one_sentence(become: Callable[..., Done]) -> None:
    refused(become("--port", "0", "--egress", "everything"), "egress", "none, list, packages, public")
