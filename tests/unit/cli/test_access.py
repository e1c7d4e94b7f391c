"""Who you are, at which server: log-in, sign-up, tokens, accounts. And every way in which a server cannot be reached or understood."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from everforge.accounts.mail import RecordingMailer
from everforge.client.config import config_path
from kit.background import in_background
from kit.service import Running

from .conftest import Command, env_of, spawned


def test_login_tries_the_token_and_keeps_it_for_the_next_time(server: Running, stranger: Command) -> None:
    done = stranger("login", "--api-base-url", server.url, stdin=f"{server.token}\n")
    assert (done.code, done.out) == (0, f"logged in as owner at {server.url}\n")
    assert config_path().stat().st_mode & 0o777 == 0o600
    found = stranger("whoami", "--json").json
    assert (found["account"], found["owner"], found["server"], found["token_from"]) == ("owner", True, server.url, str(config_path()))
    assert stranger("machine", "list").code == 0
    assert stranger("logout").out == "logged out\n"
    assert stranger("whoami").code == 4
    assert stranger("logout", "--json").json == {"logged_out": False}


@pytest.mark.parametrize("token", ["not.this", "no spaces please", "x" * 2000, ""])
def test_a_wrong_token_is_not_kept(server: Running, stranger: Command, token: str) -> None:
    done = stranger("login", "--api-base-url", server.url, stdin=token)
    assert (done.code, done.out) == (2 if not token else 3, "")
    assert "everforge login`" not in done.sentence, "that is what was just done"
    assert not config_path().exists()
    if token == "not.this":
        assert "does not know this token: copy it as it was shown" in done.sentence


def test_a_link_logs_in_once(server: Running, everforge: Command, stranger: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    link = everforge("token", "link", "--json").json["url"]
    for name in env_of(server):
        monkeypatch.delenv(name)
    assert stranger("login", link, "--token", "a.b").code == 2
    done = stranger("login", link)
    assert (done.code, done.out) == (0, f"logged in as owner at {server.url}\n")
    assert stranger("whoami", "--json").json["token_from"] == str(config_path())
    again = stranger("login", link)
    assert again.code == 3
    assert "link" in again.sentence
    for made_up in ("a-b_c", "-", "A0"):  # of the characters that a link may have: for the server to judge
        assert json.loads(stranger("login", f"{server.url}/login/{made_up}", "--json").err)["code"] == "LinkInvalid"
    for wrong in ("not-a-link", server.url, f"{server.url}/login/", f"{server.url}/login/../v1"):
        assert "that is not a log-in link" in stranger("login", wrong).sentence


def test_the_environment_goes_before_a_login_and_that_is_said(server: Running, stranger: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERFORGE_TOKEN", server.token)
    done = stranger("login", "--api-base-url", server.url, "--token", server.token)
    assert done.code == 0
    assert "EVERFORGE_TOKEN is set" in done.err


def test_signing_up_logs_in_and_shows_the_token_once(server: Running, stranger: Command) -> None:
    done = stranger("signup", "--email", "ada@example.org", "--account-name", "ada", "--api-base-url", server.url)
    assert done.code == 0, done.err
    assert json.loads(config_path().read_text())["token"] == done.out.strip()
    assert stranger("whoami", "--json").json["account"] == "ada"
    assert stranger("account", "list").code == 3, "only the owner may"
    again = stranger("signup", "--email", "ada@example.org", "--account-name", "ada", "--api-base-url", server.url, "--json")
    assert (again.code, json.loads(again.err)["code"]) == (3, "AccountNameAlreadyExists")
    assert stranger("signup", "--email", "x@example.org", "--api-base-url", server.url).code == 2, "there is no terminal to ask at"


def test_tokens_are_made_shown_once_listed_and_revoked(server: Running, everforge: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    made = everforge("token", "new", "--name", "reader", "--scope", "read", "--json").json
    assert [made["id"], "reader", "read"] in [line.split("\t")[:3] for line in everforge("token", "list").out.splitlines()]
    assert made["token"] not in everforge("token", "list", "--json").out
    monkeypatch.setenv("EVERFORGE_TOKEN", made["token"])
    assert everforge("machine", "list").code == 0
    assert everforge("machine", "new").code == 3
    monkeypatch.setenv("EVERFORGE_TOKEN", server.token)
    assert everforge("token", "revoke", made["id"]).out == f"revoked {made['id']}\n"
    monkeypatch.setenv("EVERFORGE_TOKEN", made["token"])
    assert "everforge login" in everforge("machine", "list").sentence


def test_the_owner_makes_and_deletes_accounts_and_invites(everforge: Command) -> None:
    token = everforge("account", "new", "grace", "--email", "grace@example.org").out.strip()
    assert token.count(".") == 1
    assert ["grace", "grace@example.org", "no"] in [line.split("\t")[:3] for line in everforge("account", "list").out.splitlines()]
    assert everforge("account", "invite", "--json").json.keys() == {"invitation", "expires_at"}
    assert everforge("account", "delete", "grace").out == "deleted grace\n"
    assert "machines\t" in everforge("usage").out
    assert everforge("usage", "--json").json["machines"] == 0


@pytest.mark.parametrize(
    "words",
    [["token", "revoke", "nonesuch"], ["token", "new", "--expires-at", "soon"], ["account", "new", "Not A Name"],
     ["account", "delete", "nonesuch"], ["account", "delete", "owner"], ["account", "invite", "--email", "nobody"], ["login", "--api-base-url", "nowhere"],
     ["machine", "new", "--expires-at", "tomorrow"], ["machine", "new", "--from-snapshot", "no:snapshot"]],
    ids=" ".join,
)  # fmt: skip
def test_a_refusal_is_one_sentence(everforge: Command, words: list[str]) -> None:
    done = everforge(*words)
    assert (done.code, done.out) == (3, "")
    assert done.sentence


@pytest.mark.parametrize(
    "words", [["token"], ["token", "revoke"], ["account", "new"], ["account", "delete"], ["usage", "extra"], ["whoami", "--nonesuch"]]
)
def test_wrong_usage_is_exit_code_2_or_help(everforge: Command, words: list[str]) -> None:
    done = everforge(*words)
    assert (done.code, bool(done.out)) == ((0, True) if words == ["token"] else (2, False))


# --- servers that are not as they should be ------------------------------------------------------------------------------------------

ASKING: Sequence[Sequence[str]] = [["machine", "list"], ["machine", "show", "x"], ["whoami"], ["machine", "exec", "x", "1"]]


@pytest.mark.parametrize("words", ASKING, ids=" ".join)
def test_an_unreachable_server_is_exit_code_4_and_says_what_to_do(stranger: Command, monkeypatch: pytest.MonkeyPatch, words: Sequence[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    monkeypatch.setenv("EVERFORGE_URL", url)
    monkeypatch.setenv("EVERFORGE_TOKEN", "a.b")
    done = stranger(*words)
    assert done.code == 4
    assert url in done.sentence
    assert "everforge serve" in done.sentence
    assert json.loads(stranger(*words, "--json").err)["code"] == "Unreachable"


@pytest.mark.parametrize("words", ASKING, ids=" ".join)
def test_without_any_server_it_says_how_to_get_one(stranger: Command, words: Sequence[str]) -> None:
    done = stranger(*words)
    assert (done.code, done.out) == (4, "")
    assert "everforge serve" in done.sentence
    assert json.loads(stranger(*words, "--json").err)["code"] == "ServerUnknown"
    assert "--api-base-url" in stranger("login").sentence


def test_on_the_servers_own_computer_no_login_is_needed(server: Running, stranger: Command, home: Path) -> None:
    (home / "data").mkdir()
    for name, text in (("owner.token", server.token), ("server.json", json.dumps({"url": server.url}))):
        (home / "data" / name).write_text(text)
        (home / "data" / name).chmod(0o600)
    assert stranger("whoami", "--json").json["token_from"] == str(home / "data/owner.token")


@contextmanager
def answering(answer: bytes) -> Generator[str]:
    """Something else at that port, that says the same to everybody."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def work() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(60)


def http(status: str, body: bytes, kind: bytes = b"application/json") -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (status.encode(), kind, len(body), body)


OLD = json.dumps({"code": "RouteNotFound", "message": "there is nothing there", "retry": "never", "id": "1", "details": {}}).encode()


@pytest.mark.parametrize(
    "answer",
    [http("404 Not Found", b"<html>", b"text/html"), http("404 Not Found", OLD), http("200 OK", b"{}"), http("200 OK", b"[]"), http("200 OK", b"not json"),
     http("200 OK", b'{"machines": [{}], "next": null, "account": 3}'), http("301 Moved", b"")],
    ids=["foreign", "old", "empty", "list", "garbage", "strange", "moved"],
)  # fmt: skip
@pytest.mark.parametrize("words", ASKING[:2], ids=" ".join)
def test_what_is_no_server_of_ours_or_an_old_one_is_one_sentence(
    stranger: Command, monkeypatch: pytest.MonkeyPatch, answer: bytes, words: Sequence[str]
) -> None:
    with answering(answer) as url:
        monkeypatch.setenv("EVERFORGE_URL", url)
        monkeypatch.setenv("EVERFORGE_TOKEN", "a.b")
        done = stranger(*words)
    assert done.code == 3
    assert done.sentence


# --- the start -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["--help"], ["machine", "exec", "--help"], ["machine", "list"], ["--version"]], ids=" ".join)
def test_what_people_ask_most_often_loads_no_large_library(server: Running, words: list[str]) -> None:
    with spawned(*words, env={**env_of(server), "PYTHONPROFILEIMPORTTIME": "1"}) as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    loaded = {line.split("|")[-1].strip().split(".")[0] for line in err.splitlines()}
    assert "everforge" in loaded
    assert loaded & {"typer", "click", "rich", "httpx2", "websockets", "asyncio", "pydantic", "sqlalchemy"} == set()


# --- completion in the shell -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shell", "file"), [("bash", ".bash_completions/everforge.sh"), ("zsh", ".zfunc/_everforge"), ("fish", ".config/fish/completions/everforge.fish")]
)
def test_completion_installs(home: Path, shell: str, file: str) -> None:
    with spawned("--install-completion", shell, env={"HOME": str(home)}) as process:
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert "_EVERFORGE_COMPLETE" in (home / file).read_text()


def test_names_of_machines_complete_and_a_server_that_is_gone_completes_nothing(everforge: Command, server: Running) -> None:
    for name in ("complete-a", "complete-b", "other"):
        everforge("machine", "new", "--name", name)
    asked = {"_EVERFORGE_COMPLETE": "complete_bash", "COMP_WORDS": "everforge machine exec comp", "COMP_CWORD": "3"}
    with spawned(env={**env_of(server), **asked}) as process:
        out, err = process.communicate(timeout=60)
    assert (sorted(out.split()), err) == (["complete-a", "complete-b"], "")
    with spawned(env={"EVERFORGE_URL": "http://127.0.0.1:1", "EVERFORGE_TOKEN": "a.b", **asked}) as process:
        out, err = process.communicate(timeout=60)
    assert (out.strip(), err) == ("", "")


def test_a_mailed_token_is_told_of(stranger: Command) -> None:
    with in_background(mailer=RecordingMailer()) as server:
        done = stranger("signup", "--email", "a@example.org", "--account-name", "ada", "--api-base-url", server.url)
    assert (done.code, done.out) == (0, "")
    assert "check your mail" in done.sentence
