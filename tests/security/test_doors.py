"""trust.md, Doors: each line on a server as a user starts it, a process of its own, by HTTP alone. What is tried at more length has its place in tests/unit/server."""

from __future__ import annotations

import json
import os
import re
import socket
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from everforge import Everforge, Machine
from kit.commandserver import CommandServer
from kit.operations import Operation, operations

pytestmark = pytest.mark.gvisor

TOKEN = re.compile(r"[a-z][a-z0-9]{11}\.[a-z0-9]{40}")
SCOPES = ("read", "exec", "manage")


@pytest.fixture(scope="package")
def http(served: CommandServer) -> Iterator[httpx2.Client]:
    """Of nobody: it says who it is with each request, or not."""
    with httpx2.Client(base_url=served.url, timeout=60) as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="package")
def stranger(served: CommandServer, http: httpx2.Client) -> str:
    """The token of another account."""
    made = http.post("/v1/accounts", headers=bearer(served.token), json={"account_name": "stranger"})
    assert made.status_code == 200, made.text
    return made.json()["token"]


def new_token(served: CommandServer, http: httpx2.Client, *scopes: str) -> tuple[str, str]:
    """Id and token."""
    made = http.post("/v1/tokens", headers=bearer(served.token), json={"scopes": list(scopes)} if scopes else {})
    assert made.status_code == 200, made.text
    return made.json()["id"], made.json()["token"]


@pytest.fixture(scope="package")
def every(http: httpx2.Client) -> list[Operation]:
    """Every route, from the document that the server itself gives."""
    return list(operations(http.get("/openapi.json").json()))


KNOWN = {"name": "attacked", "seq": "0", "call": "0", "snapshot": "none", "id": "t" + "z" * 11, "account": "nobody", "path": "file.txt"}


def ask(http: httpx2.Client, operation: Operation, token: str | None, **values: str) -> httpx2.Response:
    return http.request(operation.method, operation.url(KNOWN | values), headers={} if token is None else bearer(token), **operation.body())


# --- tokens ------------------------------------------------------------------------------------------------------------------------------


def test_tokens_are_random_and_long(served: CommandServer, http: httpx2.Client) -> None:
    tokens = [new_token(served, http)[1] for _ in range(20)]
    assert all(TOKEN.fullmatch(token) for token in tokens)
    secrets = [token.partition(".")[2] for token in tokens]
    for place in range(0, 32, 8):
        assert len({secret[place : place + 8] for secret in secrets}) == 20, "some part of a secret repeats"


def test_tokens_are_kept_hashed_and_shown_once(served: CommandServer, http: httpx2.Client) -> None:
    _, token = new_token(served, http)
    secret = token.partition(".")[2]
    assert secret not in http.get("/v1/tokens", headers=bearer(served.token)).text
    assert http.get("/v1/whoami", headers=bearer(token)).status_code == 200
    with closing(sqlite3.connect(f"file:{served.data}/everforge.db?mode=ro", uri=True)) as database:
        assert secret not in "\n".join(database.iterdump())
    for folder, _, names in os.walk(served.data):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and os.path.getsize(path) < 64 << 20 and name != "runsc" and "snapshots" not in folder:
                with open(path, "rb") as file:
                    assert secret.encode() not in file.read(), path
    assert secret not in served.log.read_text()


def test_what_the_owner_keeps_on_disk_is_for_the_owner_alone(served: CommandServer) -> None:
    for name in ("owner.token", "token.key", "everforge.db"):
        assert stat.S_IMODE(os.stat(served.data / name).st_mode) & 0o077 == 0, name


def test_a_token_that_was_revoked_is_good_for_nothing_from_then_on(served: CommandServer, http: httpx2.Client) -> None:
    id, token = new_token(served, http)
    assert http.get("/v1/whoami", headers=bearer(token)).status_code == 200
    assert http.delete(f"/v1/tokens/{id}", headers=bearer(served.token)).status_code == 200
    assert http.get("/v1/whoami", headers=bearer(token)).status_code == 401


def test_a_token_that_has_expired_is_good_for_nothing_from_then_on(served: CommandServer, http: httpx2.Client) -> None:
    until = time.time() + 3.0  # as the server's clock has it, which is this one
    token = http.post("/v1/tokens", headers=bearer(served.token), json={"expires_at": datetime.fromtimestamp(until, UTC).isoformat()}).json()["token"]
    statuses: list[tuple[bool, int]] = []
    while not statuses or statuses[-1][1] == 200:
        answer = http.get("/v1/whoami", headers=bearer(token))
        statuses.append((time.time() < until, answer.status_code))
    assert statuses[0] == (True, 200)
    assert statuses[-1] == (False, 401)
    assert (False, 200) not in statuses[:-2]  # the one that was under way at that moment may be


def test_a_token_gives_away_no_more_than_it_has(served: CommandServer, http: httpx2.Client) -> None:
    _, narrow = new_token(served, http, "manage")
    assert http.post("/v1/tokens", headers=bearer(narrow), json={"scopes": ["exec"]}).status_code == 403


# --- every route, for everybody who must not ------------------------------------------------------------------------------------------------


def test_without_a_good_token_no_guarded_route_answers(served: CommandServer, http: httpx2.Client, every: list[Operation], machine: Machine) -> None:
    id, revoked = new_token(served, http)
    http.delete(f"/v1/tokens/{id}", headers=bearer(served.token))
    guarded = [operation for operation in every if operation.scope is not None]
    assert len(guarded) > 30
    told = set[str]()
    for operation in guarded:
        for token in (None, revoked, "abc", served.token[:-1] + ("a" if served.token[-1] != "a" else "b")):
            answer = ask(http, operation, token)
            assert (answer.status_code, answer.json()["code"]) == (401, "Unauthenticated"), (operation.id, token)
            told.add(answer.json()["message"] if token else "")
    assert len(told) == 2, "all bad tokens are refused in the same words"


def test_the_machine_of_another_is_not_there_and_nothing_hints_at_it(
    http: httpx2.Client, every: list[Operation], stranger: str, machine: Machine
) -> None:
    for operation in every:
        if not operation.of_a_machine:
            continue
        theirs, nobodys = ask(http, operation, stranger), ask(http, operation, stranger, name="attackee")
        assert (theirs.status_code, theirs.json().get("code")) == (404, "MachineNotFound"), (operation.id, theirs.text[:300])
        for answer in (theirs, nobodys):
            answer.headers.pop("x-request-id", None)
            answer.headers.pop("date", None)
        assert theirs.text.replace(theirs.json()["id"], "") == nobodys.text.replace(nobodys.json()["id"], "").replace("attackee", "attacked"), (
            operation.id
        )
        assert dict(theirs.headers) == dict(nobodys.headers), operation.id


def test_a_token_without_the_scope_gets_nowhere(served: CommandServer, http: httpx2.Client, every: list[Operation], machine: Machine) -> None:
    without = {scope: new_token(served, http, *(other for other in SCOPES if other != scope))[1] for scope in SCOPES}
    for operation in every:
        if operation.scope is not None:
            answer = ask(http, operation, without[operation.scope])
            assert (answer.status_code, answer.json()["code"]) == (403, "Forbidden"), operation.id
            assert answer.json()["details"]["scope"] == operation.scope, operation.id


# --- a token by tag --------------------------------------------------------------------------------------------------------------------------

RED, BLUE = {"team": "red"}, {"team": "blue"}


@pytest.fixture
def red(served: CommandServer, http: httpx2.Client, server: Everforge) -> Iterator[httpx2.Client]:
    """Somebody whose token is for machines with one tag. One such machine is there, and one with another tag; `attacked` has none."""
    made = http.post("/v1/tokens", headers=bearer(served.token), json={"tags": RED})
    assert made.status_code == 200, made.text
    machines = [server.create("red-one", tags=RED), server.create("blue-one", tags=BLUE)]
    with httpx2.Client(base_url=served.url, headers=bearer(made.json()["token"]), timeout=60) as client:
        yield client
    for machine in machines:
        machine.delete()


@pytest.mark.parametrize("other", ["blue-one", "attacked"])
def test_for_a_token_by_tag_other_machines_are_not_there(red: httpx2.Client, every: list[Operation], machine: Machine, other: str) -> None:
    """Every route: so they can be neither forked nor tagged anew, nor anything else."""
    tried = [operation for operation in every if operation.of_a_machine]
    assert {"POST /v1/machine/{name}/fork", "PATCH /v1/machine/{name}"} <= {operation.id for operation in tried}
    for operation in tried:
        answer = red.request(operation.method, operation.url({**KNOWN, "name": other}), **operation.body())
        assert (answer.status_code, answer.json()["code"]) == (404, "MachineNotFound"), (operation.id, answer.text[:300])
    assert red.post("/v1/machine/new", json={"from_snapshot": {"machine": other, "snapshot": "s"}}).status_code == 404


def test_a_token_by_tag_lists_and_uses_what_has_the_tag_and_nothing_else(red: httpx2.Client, machine: Machine) -> None:
    assert [one["name"] for one in red.get("/v1/machine/list").json()["machines"]] == ["red-one"]
    for asked in ({"tags": BLUE}, {"name_prefix": "blue"}, {"name_prefix": "attacked"}):
        assert red.post("/v1/machine/list", json=asked).json()["machines"] == []
    ran = red.post("/v1/machine/red-one/exec", json={"instruction": {"code": "6 * 7"}}).json()
    answer = red.get(f"/v1/machine/red-one/exec/{ran['instruction_seq']}/result", timeout=60).json()
    assert answer["result"]["value"] == "42"


def test_what_a_token_by_tag_makes_or_changes_has_the_tag_whatever_it_asks_for(red: httpx2.Client, server: Everforge) -> None:
    assert red.post("/v1/machine/new", json={"tags": BLUE}).status_code == 403
    assert red.patch("/v1/machine/red-one", json={"tags": BLUE}).status_code == 403
    assert red.patch("/v1/machine/red-one", json={"tags": {}}).json()["tags"] == RED
    made = [red.post("/v1/machine/new", json={}), red.post("/v1/machine/new", json={"tags": {}}), red.post("/v1/machine/red-one/fork", json={})]
    try:
        assert [server.machine(one.json()["machine_name"]).info().tags for one in made] == [RED] * 3
    finally:
        for one in made:
            server.machine(one.json()["machine_name"]).delete()


def test_what_is_the_whole_accounts_is_refused_to_a_token_by_tag(red: httpx2.Client, every: list[Operation]) -> None:
    """All routes but those of machines, and the one by which a token asks what it is."""
    harmless = {"GET /v1/whoami", "GET /v1/account", "GET /v1/machine/list", "POST /v1/machine/list", "POST /v1/machine/new"}
    guarded = [operation for operation in every if operation.scope is not None and not operation.of_a_machine and operation.id not in harmless]
    assert {"POST /v1/tokens", "GET /v1/tokens", "GET /v1/secrets", "GET /v1/audit", "GET /v1/usage"} <= {operation.id for operation in guarded}
    for operation in guarded:
        answer = red.request(operation.method, operation.url(KNOWN), **operation.body())
        assert (answer.status_code, answer.json()["code"]) == (403, "Forbidden"), (operation.id, answer.text[:300])


def test_what_is_the_owners_alone_is_refused_to_others(http: httpx2.Client, every: list[Operation], stranger: str) -> None:
    owners = [operation for operation in every if operation.owner_only]
    assert owners
    for operation in owners:
        assert ask(http, operation, stranger).status_code == 403, operation.id


def test_websockets_are_refused_in_the_handshake(served: CommandServer, stranger: str, machine: Machine) -> None:
    base = served.url.replace("http", "ws")
    for path in ("repl", "connect"):
        for token, status in ((None, 401), ("abc", 401), (stranger, 404)):
            with pytest.raises(InvalidStatus) as caught:
                connect(f"{base}/v1/machine/{machine.name}/{path}", additional_headers={} if token is None else bearer(token)).close()
            assert caught.value.response.status_code == status


# --- the browser of somebody on this computer ---------------------------------------------------------------------------------------------------


def test_it_listens_on_this_computer_alone_unless_told_otherwise(served: CommandServer) -> None:
    port = int(served.url.rpartition(":")[2])
    listening = [
        line.split()[1] for file in ("/proc/net/tcp", "/proc/net/tcp6") for line in Path(file).read_text().splitlines()[1:] if line.split()[3] == "0A"
    ]
    assert [address for address in listening if int(address.rpartition(":")[2], 16) == port] == [f"0100007F:{port:04X}"]


@pytest.mark.parametrize("path", ["/", "/healthz", "/openapi.json", "/v1/whoami", "/v1/machine/list", "/login/abc"])
def test_a_page_whose_name_was_made_to_lead_here_gets_nothing(served: CommandServer, http: httpx2.Client, path: str) -> None:
    """DNS rebinding: the browser believes that this server is evil.example, and says so."""
    for host in ("evil.example", "evil.example:80", f"127.0.0.1.evil.example:{served.url.rpartition(':')[2]}"):
        answer = http.get(path, headers={**bearer(served.token), "Host": host})
        assert (answer.status_code, answer.json()["code"]) == (421, "HostUnknown")


def test_a_page_whose_name_was_made_to_lead_here_gets_no_websocket(served: CommandServer, machine: Machine) -> None:
    place = ("127.0.0.1", int(served.url.rpartition(":")[2]))
    with socket.create_connection(place, 10) as raw, pytest.raises(InvalidStatus) as caught:
        connect(f"ws://evil.example/v1/machine/{machine.name}/connect", sock=raw, additional_headers=bearer(served.token)).close()
    assert caught.value.response.status_code == 421


def test_no_cookie_is_ever_set_or_believed_so_that_no_other_page_can_act_for_anybody(
    served: CommandServer, http: httpx2.Client, every: list[Operation]
) -> None:
    """Who asks is told by a header that a browser never sends by itself. So there is nothing that a forged request could ride on."""
    for name in ("token", "session", "Authorization", "_forevervm_jwt", "everforge"):
        answer = http.get("/v1/whoami", headers={"Cookie": f"{name}={served.token}; {name}=Bearer {served.token}"})
        assert answer.status_code == 401
    for operation in every:
        for token in (None, served.token) if operation.method == "GET" and not operation.of_a_machine else (None,):
            assert "set-cookie" not in ask(http, operation, token).headers, operation.id


def test_other_origins_may_not_read_answers(served: CommandServer, http: httpx2.Client) -> None:
    for method in ("GET", "OPTIONS", "POST"):
        headers = {**bearer(served.token), "Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        answer = http.request(method, "/v1/machine/list", headers=headers)
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_pages_run_no_script_and_may_not_be_framed_or_kept(http: httpx2.Client) -> None:
    for path in ("/", "/login/abc"):
        headers = http.get(path, headers={"Accept": "text/html"}).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert (headers["cache-control"], headers["referrer-policy"]) == ("no-store", "no-referrer")


def test_what_a_machine_holds_is_never_shown_as_a_page_of_the_server(served: CommandServer, http: httpx2.Client, machine: Machine) -> None:
    """A file that is a page with a script in it comes as a file, and a browser is told not to guess."""
    machine.files.write("evil.html", "<script>alert(1)</script>")
    answer = http.get(f"/v1/machine/{machine.name}/files/evil.html", headers={**bearer(served.token), "Accept": "text/html"})
    assert answer.content == b"<script>alert(1)</script>"
    assert answer.headers["content-type"].startswith("application/octet-stream")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"] == "sandbox"


def test_a_log_in_link_gives_one_token_once(served: CommandServer, http: httpx2.Client) -> None:
    url = http.post("/v1/links", headers=bearer(served.token)).json()["url"].replace(served.url, "")
    assert http.get(url).status_code == 200, "a mail program that looks at it uses nothing up"
    first, second = http.post(url), http.post(url)
    assert TOKEN.fullmatch(first.json()["token"])
    assert (second.status_code, "token" in second.json()) == (400, False) or second.status_code in (404, 410), second.text


# --- clients that send too much ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "status"),
    [("a header", 431), ("a body", 413), ("a stranger's body", 413)],
)
def test_too_much_is_refused(served: CommandServer, http: httpx2.Client, what: str, status: int) -> None:
    requests: dict[str, Any] = {
        "a header": {"method": "GET", "url": "/healthz", "headers": {"X-Long": "x" * 200_000}},
        "a body": {"method": "POST", "url": "/v1/machine/list", "headers": bearer(served.token), "content": b" " * (9 << 20)},
        "a stranger's body": {"method": "POST", "url": "/internal/signup", "content": json.dumps({"email": "x" * 20_000}).encode()},
    }
    assert http.request(**requests[what]).status_code == status


def test_after_all_of_it_the_log_has_no_mistake_of_the_server(served: CommandServer) -> None:
    """Run last in this file, and true at any time."""
    assert "Traceback" not in served.log.read_text()
