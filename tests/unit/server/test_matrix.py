"""Every route, asked by everybody who must not: refused in the right words, with no effect and no hint. Requests are made from the OpenAPI document, so
that a new route is in it as soon as it is there; who may what is written down here, so that a route cannot choose for itself."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from everforge.accounts.identity import SCOPES
from everforge.machines.requests import NewMachine
from everforge.machines.settings import MachineSettings
from everforge.server.app import DOORS, SOCKETS
from everforge.server.bounds import bounds
from everforge.server.openapi import document
from everforge.server.settings import ServerSettings
from everforge.store.base import MachineQuery
from kit.operations import Operation, operations
from kit.service import Running, service

OPERATIONS = list(operations(document(DOORS, SOCKETS, bounds(ServerSettings(), MachineSettings()))))
ALLOWED_BY = {
    None: """
        GET /                                               GET /healthz
        GET /openapi.json                                   POST /internal/signup
        GET /login/{code}                                   POST /login/{code}
    """,
    "read": """
        GET /v1/whoami                                      GET /v1/account
        GET /v1/usage                                       GET /metrics
        GET /v1/machine/list                                POST /v1/machine/list
        GET /v1/machine/{name}                              GET /v1/machine/{name}/tape
        GET /v1/machine/{name}/exec                         GET /v1/machine/{name}/exec/{seq}
        GET /v1/machine/{name}/exec/{seq}/result            GET /v1/machine/{name}/exec/{seq}/stream-result
        GET /v1/machine/{name}/files                        GET /v1/machine/{name}/files/{path}
        GET /v1/machine/{name}/archive                      GET /v1/machine/{name}/snapshots
        GET /v1/machine/{name}/egress                       GET /v1/machine/{name}/egress/log
        GET /v1/egress                                      GET /v1/secrets
    """,
    "exec": """
        POST /v1/machine/{name}/exec                        POST /v1/machine/{name}/exec/{seq}/calls/{call}
        POST /v1/machine/{name}/interrupt                   POST /v1/machine/{name}/complete
        POST /v1/machine/{name}/wake                        PUT /v1/machine/{name}/archive
        PUT /v1/machine/{name}/files/{path}                 DELETE /v1/machine/{name}/files/{path}
    """,
    "manage": """
        POST /v1/machine/new                                PATCH /v1/machine/{name}
        DELETE /v1/machine/{name}                           POST /v1/machine/{name}/fork
        POST /v1/machine/{name}/hibernate                   POST /v1/machine/{name}/reset
        POST /v1/machine/{name}/rollback                    POST /v1/machine/{name}/snapshots
        DELETE /v1/machine/{name}/snapshots/{snapshot}      POST /v1/links
        GET /v1/tokens                                      POST /v1/tokens
        DELETE /v1/tokens/{id}                              POST /v1/invitations
        GET /v1/accounts                                    POST /v1/accounts
        GET /v1/audit                                       GET /v1/webhooks
        POST /v1/webhooks                                   DELETE /v1/webhooks/{id}
        POST /v1/webhooks/{id}/test                         GET /v1/webhooks/dead
        POST /v1/webhooks/dead/retry                        PATCH /v1/accounts/{account}/quota
        DELETE /v1/accounts/{account}                       POST /v1/machine/{name}/egress
        PUT /v1/egress                                      PUT /v1/secrets/{secret}
        DELETE /v1/secrets/{secret}
    """,
}
SCOPE_OF = {f"{method} {path}": scope for scope, text in ALLOWED_BY.items() for method, path in re.findall(r"([A-Z]+) (/\S*)", text)}
OWNERS = {
    "GET /metrics",
    "GET /v1/accounts",
    "POST /v1/accounts",
    "DELETE /v1/accounts/{account}",
    "POST /v1/invitations",
    "PATCH /v1/accounts/{account}/quota",
}
GUARDED = [operation for operation in OPERATIONS if SCOPE_OF[operation.id] is not None]
OF_MACHINES = [operation for operation in GUARDED if operation.of_a_machine]
NAME, NOBODYS = "machine-of-mine", "machine-of-none"  # equally long: so are the answers
THEIRS = "theirs-and-mine"
SOCKET_SCOPES = {"/v1/machine/{name}/repl": {"exec"}, "/v1/machine/{name}/connect": {"exec", "read"}}


class Case:
    """A server with something of everything, and those who come to it."""

    def __init__(self, running: Running, client: httpx2.AsyncClient) -> None:
        self.running = running
        self.client = client

    async def prepare(self) -> None:
        machines = self.running.machines
        await machines.create(NewMachine(name=NAME, tags={"project": "demo"}))
        await machines.run(NAME, "print('here')\nx = 1")
        await machines.snapshot(NAME, "before")
        self.stranger = await self.running.account("stranger")
        owner = await self.running.accounts.identify(self.running.token)
        stranger = await self.running.accounts.identify(self.stranger)
        await machines.of(stranger.account).create(NewMachine(name=THEIRS))
        kept = await self.running.accounts.new_token(owner, name="kept")
        await self.running.service.egress.secrets.set(owner.account, "KEPT", "nobody sees this", ["api.example.com"], "", [])
        self.values = {
            "name": NAME,
            "seq": "0",
            "call": "0",
            "snapshot": "before",
            "id": kept.record.id,
            "account": "stranger",
            "path": "file.txt",
            "secret": "KEPT",
        }
        revoked = await self.running.accounts.new_token(owner)
        await self.running.accounts.revoke(owner, revoked.record.id)
        expired = await self.running.accounts.new_token(owner, expires_at=time.time() + 0.05)
        while self.running.accounts.cached(expired.token) or time.time() <= (expired.record.expires_at or 0):
            await asyncio.sleep(0.01)
        id, secret = self.running.token.split(".")
        self.unauthenticated = {
            "no token": None,
            "no scheme": self.running.token,
            "another scheme": f"Basic {self.running.token}",
            "a scheme alone": "Bearer",
            "malformed": "Bearer abc",
            "half of one": f"Bearer {id}.",
            "a wrong secret": f"Bearer {id}.{secret[::-1]}",
            "not ASCII": "Bearer \xff\xfe.\xff",
            "very long": "Bearer " + "a" * 10_000,
            "revoked": f"Bearer {revoked.token}",
            "expired": f"Bearer {expired.token}",
        }

    async def ask(self, operation: Operation, authorization: str | None, **values: str) -> httpx2.Response:
        headers = {} if authorization is None else {"Authorization": authorization.encode("latin-1")}
        url = operation.url(self.values | values)
        return await self.client.request(operation.method, url, headers=headers, **operation.body())  # pyright: ignore[reportArgumentType]

    async def everything(self) -> Any:
        """All that a request could have changed; when a token was used is not of it."""
        accounts, found = self.running.accounts, []
        owner = await accounts.identify(self.running.token)
        stranger = await accounts.identify(self.stranger)
        for identity in (owner, stranger):
            machines = self.running.machines.of(identity.account)
            for view in await machines.list(MachineQuery()):
                tape = [event async for event in machines.read(view.record.name)]
                found.append((dataclasses.replace(view.record, last_used_at=0.0), tape, await machines.points(view.record.name)))
            found.append([dataclasses.replace(token, last_used_at=None) for token in await accounts.tokens(identity)])
        return found, await accounts.accounts(owner)


@pytest.fixture
async def case() -> AsyncIterator[Case]:
    async with service() as running, httpx2.AsyncClient(base_url=running.url) as client:
        case = Case(running, client)
        await case.prepare()
        yield case


def error(response: httpx2.Response) -> dict[str, Any]:
    """The body, and that it has the one form of errors."""
    body = response.json()
    assert set(body) == {"code", "message", "retry", "id", "details"}
    assert body["id"] == response.headers["x-request-id"]
    return body


async def test_nobody_without_a_good_token_gets_anywhere(case: Case) -> None:
    before = await case.everything()
    for operation in GUARDED:
        for who, authorization in case.unauthenticated.items():
            response = await case.ask(operation, authorization)
            assert (response.status_code, error(response)["code"]) == (401, "Unauthenticated"), f"{operation.id}, {who}"
            assert response.headers["www-authenticate"].startswith("Bearer")
    assert await case.everything() == before


async def test_all_bad_tokens_get_the_same_answer(case: Case) -> None:
    told = set[str]()
    for authorization in case.unauthenticated.values():
        if authorization is not None and authorization.startswith("Bearer "):
            told.add(error(await case.ask(GUARDED[0], authorization))["message"])
    assert len(told) == 1


async def test_a_token_without_the_scope_gets_nowhere(case: Case) -> None:
    tokens = {scope: await case.running.scoped(*(SCOPES - {scope})) for scope in SCOPES}
    before = await case.everything()
    for operation in GUARDED:
        scope = SCOPE_OF[operation.id]
        assert scope is not None
        response = await case.ask(operation, f"Bearer {tokens[scope]}")
        body = error(response)
        assert (response.status_code, body["code"], body["details"]["scope"]) == (403, "Forbidden", scope), operation.id
    assert await case.everything() == before


async def test_a_token_with_no_more_than_the_scope_is_enough(case: Case) -> None:
    tokens = {scope: await case.running.scoped(scope) for scope in SCOPES}
    for operation in GUARDED:
        response = await case.ask(operation, f"Bearer {tokens[SCOPE_OF[operation.id] or '']}")
        if response.status_code == 403:
            assert "scope" not in error(response)["details"], operation.id


def test_the_document_tells_who_may_what_as_it_is() -> None:
    assert {operation.id: operation.scope for operation in OPERATIONS} == SCOPE_OF
    assert {operation.id for operation in OPERATIONS if operation.owner_only} == OWNERS


async def test_what_is_the_owners_alone_is_refused_to_others(case: Case) -> None:
    owners = [operation for operation in GUARDED if operation.id in OWNERS]
    assert len(owners) == len(OWNERS)
    before = await case.everything()
    for operation in owners:
        response = await case.ask(operation, f"Bearer {case.stranger}")
        assert (response.status_code, error(response)["code"]) == (403, "Forbidden"), operation.id
    assert await case.everything() == before


def without_id(response: httpx2.Response) -> tuple[int, Any, dict[str, str]]:
    body = error(response)
    headers = {k: v for k, v in response.headers.items() if k not in ("date", "x-request-id")}
    return response.status_code, {**body, "id": None}, headers


async def test_the_machines_of_others_are_not_there_and_nothing_hints_at_them(case: Case) -> None:
    before = await case.everything()
    for operation in OF_MACHINES:
        theirs = await case.ask(operation, f"Bearer {case.stranger}")
        nobodys = await case.ask(operation, f"Bearer {case.stranger}", name=NOBODYS)
        assert (theirs.status_code, error(theirs)["code"]) == (404, "MachineNotFound"), operation.id
        assert str(without_id(theirs)) == str(without_id(nobodys)).replace(NOBODYS, NAME), operation.id
    assert await case.everything() == before


async def test_tokens_of_others_are_not_there(case: Case) -> None:
    [operation] = [operation for operation in GUARDED if operation.path == "/v1/tokens/{id}"]
    before = await case.everything()
    theirs = await case.ask(operation, f"Bearer {case.stranger}")
    nobodys = await case.ask(operation, f"Bearer {case.stranger}", id="t" + "z" * 11)
    assert (theirs.status_code, error(theirs)["code"]) == (404, "TokenNotFound")
    assert str(without_id(theirs)).replace(case.values["id"], "X") == str(without_id(nobodys)).replace("t" + "z" * 11, "X")
    assert await case.everything() == before


async def test_names_that_others_use_are_free(case: Case) -> None:
    headers = {"Authorization": f"Bearer {case.stranger}"}
    made = await case.client.post("/v1/machine/new", headers=headers, json={"name": NAME})
    assert made.json() == {"machine_name": NAME}
    mine = await case.client.post(f"/v1/machine/{NAME}/fork", headers=case.running.headers, json={"names": [THEIRS]})
    assert mine.json() == {"machine_name": THEIRS, "machine_names": [THEIRS]}
    snapshots = (await case.client.get(f"/v1/machine/{NAME}/snapshots", headers=headers)).json()["snapshots"]
    assert "before" not in {snapshot["name"] for snapshot in snapshots}


async def test_lists_show_what_is_ones_own(case: Case) -> None:
    headers = {"Authorization": f"Bearer {case.stranger}"}
    for query in ("", "?tag=project=demo", f"?name_prefix={NAME[:4]}", "?state=ready"):
        listed = await case.client.get(f"/v1/machine/list{query}", headers=headers)
        assert NAME not in listed.text
    listed = await case.client.post("/v1/machine/list", headers=headers, json={"tags": {"project": "demo"}})
    assert listed.json()["machines"] == []


async def test_routes_for_everybody_ask_for_no_token(case: Case) -> None:
    for operation in OPERATIONS:
        if SCOPE_OF[operation.id] is None:
            for authorization in (None, "Bearer abc"):
                response = await case.ask(operation, authorization)
                assert response.status_code != 401, operation.id


# --- WebSockets ------------------------------------------------------------------------------------------------------------------------


async def refused(case: Case, path: str, authorization: str | None, name: str = NAME, query: str = "") -> tuple[int, dict[str, Any]]:
    headers = [] if authorization is None else [("Authorization", authorization)]
    with pytest.raises(InvalidStatus) as caught:
        async with connect(case.running.ws + path.replace("{name}", name) + query, additional_headers=headers):
            pass
    response = caught.value.response
    assert response.headers["content-type"] == "application/json"
    body = json.loads(response.body or b"")
    assert set(body) == {"code", "message", "retry", "id", "details"}
    return response.status_code, {**body, "id": None}


@pytest.mark.parametrize(("path", "needed"), SOCKET_SCOPES.items())
async def test_websockets_are_refused_in_the_handshake(case: Case, path: str, needed: set[str]) -> None:
    without = [await case.running.scoped(*(SCOPES - {scope})) for scope in needed]
    no_manage = await case.running.scoped("read", "exec")
    before = await case.everything()
    for who, authorization in case.unauthenticated.items():
        for name in (NAME, "new"):
            if who != "not ASCII":
                expected = 431 if who == "very long" else 401
                assert (await refused(case, path, authorization, name))[0] == expected, who
    for token in ("", "abc", (case.unauthenticated["revoked"] or "").removeprefix("Bearer ")):
        assert (await refused(case, path, None, query=f"?_forevervm_jwt={token}"))[0] == 401
    for token in without:
        assert (await refused(case, path, f"Bearer {token}"))[0] == 403
    assert (await refused(case, path, f"Bearer {no_manage}", "new"))[0] == 403
    theirs = await refused(case, path, f"Bearer {case.stranger}")
    nobodys = await refused(case, path, f"Bearer {case.stranger}", NOBODYS)
    assert theirs[0] == 404
    assert str(theirs) == str(nobodys).replace(NOBODYS, NAME)
    assert await case.everything() == before
    enough = await case.running.scoped(*needed)
    async with connect(case.running.ws + path.replace("{name}", NAME), additional_headers={"Authorization": f"Bearer {enough}"}) as socket:
        assert json.loads(await socket.recv())["type"] == "connected"


def test_every_websocket_is_in_the_table() -> None:
    assert {socket.path: set(socket.scopes) for socket in SOCKETS} == SOCKET_SCOPES


async def test_a_token_in_the_address_is_for_websockets_alone(case: Case) -> None:
    response = await case.client.get(f"/v1/whoami?_forevervm_jwt={case.running.token}")
    assert response.status_code == 401
