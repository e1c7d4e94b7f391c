"""Tokens for machines with certain tags: for these they are what any token is, and nothing else is there for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from everforge.machines.requests import NewMachine
from everforge.server.app import DOORS
from everforge.wire.errors import Forbidden, InvalidInput
from kit.service import Running, service

TAGS = {"team": "red"}


class Case:
    def __init__(self, running: Running, token: str) -> None:
        self.running = running
        self.token = token

    async def ask(self, method: str, path: str, token: str | None = None, json: Any = None) -> httpx2.Response:
        async with httpx2.AsyncClient(base_url=self.running.url, timeout=30) as client:
            return await client.request(method, path, headers={"Authorization": f"Bearer {token or self.token}"}, json=json)


@pytest.fixture
async def case() -> AsyncIterator[Case]:
    async with service() as running:
        owner = await running.accounts.identify(running.token)
        made = await running.accounts.new_token(owner, tags=TAGS)
        for name, tags in (("red-one", TAGS), ("blue-one", {"team": "blue"}), ("plain-one", {})):
            await running.machines.create(NewMachine(name=name, tags=tags))
        yield Case(running, made.token)


async def test_only_machines_with_the_tags_are_listed_whatever_is_asked_for(case: Case) -> None:
    assert [m["name"] for m in (await case.ask("GET", "/v1/machine/list")).json()["machines"]] == ["red-one"]
    assert (await case.ask("POST", "/v1/machine/list", json={"tags": {"team": "blue"}})).json()["machines"] == []


async def test_every_route_of_a_machine_without_the_tags_answers_as_if_it_were_not_there(case: Case) -> None:
    paths = [(route.method, route.path) for door in DOORS for route in door.routes if route.path.startswith("/v1/machine/{name}")]
    assert len(paths) > 20
    values = {"seq": "0", "call": "0", "snapshot": "s", "path:file": "f"}
    bodies: dict[str, Any] = {"exec": {"instruction": {"code": "1"}}, "complete": {"code": "x"}, "rollback": {"to": "s"}, "calls/0": {"value": 1}}
    for method, path in paths:
        answers: list[tuple[int, str]] = []
        for name in ("blue-one", "none-such"):
            filled = path.replace("{name}", name)
            for key, value in values.items():
                filled = filled.replace(f"{{{key}}}", value)
            body = next((b for end, b in bodies.items() if filled.endswith(end)), {"tags": {}} if method == "PATCH" else {})
            told = await case.ask(method, filled, json=None if method in ("GET", "DELETE") else body)
            answers.append((told.status_code, told.text.replace(name, "NAME").partition('"id"')[0]))
        assert answers[0][0] == 404, (method, path, answers)
        assert answers[0] == answers[1], (method, path)


async def test_sockets_of_other_machines_are_refused_in_the_handshake(case: Case) -> None:
    url = case.running.url.replace("http", "ws")
    headers = {"Authorization": f"Bearer {case.token}"}
    for end in ("repl", "connect"):
        with pytest.raises(InvalidStatus) as refused:
            async with connect(f"{url}/v1/machine/blue-one/{end}", additional_headers=headers):
                pass
        assert refused.value.response.status_code == 404
    async with connect(f"{url}/v1/machine/red-one/repl", additional_headers=headers) as socket:
        assert "red-one" in str(await socket.recv())


async def test_what_it_makes_has_its_tags_and_keeps_them(case: Case) -> None:
    made = (await case.ask("POST", "/v1/machine/new", json={"tags": {"more": "yes"}})).json()["machine_name"]
    assert (await case.running.machines.get(made)).record.tags == {"more": "yes", **TAGS}
    assert (await case.ask("POST", "/v1/machine/new", json={"tags": {"team": "blue"}})).status_code == 403
    assert (await case.ask("PATCH", "/v1/machine/red-one", json={"tags": {"other": "x"}})).json()["tags"] == {"other": "x", **TAGS}
    assert (await case.ask("PATCH", "/v1/machine/red-one", json={"tags": {"team": "blue"}})).status_code == 403
    copy = (await case.ask("POST", "/v1/machine/red-one/fork")).json()["machine_name"]
    assert TAGS.items() <= (await case.running.machines.get(copy)).record.tags.items()


async def test_it_makes_none_from_a_snapshot_of_a_machine_that_is_not_there_for_it(case: Case) -> None:
    await case.running.machines.snapshot("blue-one", "kept")
    from_blue = {"from_snapshot": {"machine": "blue-one", "snapshot": "kept"}}
    assert (await case.ask("POST", "/v1/machine/new", json=from_blue)).json()["code"] == "MachineNotFound"
    assert (await case.ask("POST", "/v1/machine/new", case.running.token, json=from_blue)).status_code == 200
    await case.running.machines.snapshot("red-one", "kept")
    made = await case.ask("POST", "/v1/machine/new", json={"from_snapshot": {"machine": "red-one", "snapshot": "kept"}})
    assert (await case.running.machines.get(made.json()["machine_name"])).record.tags == TAGS


async def test_what_it_gives_on_is_for_the_same_machines(case: Case) -> None:
    red = await case.running.accounts.identify(case.token)
    made = await case.running.accounts.new_token(red, tags={"more": "yes"})
    assert made.record.tags == {"more": "yes", **TAGS}
    with pytest.raises(Forbidden, match="for other machines than its own: team"):
        await case.running.accounts.new_token(red, tags={"team": "blue"})
    link = case.running.accounts.new_link(red)
    assert (await case.running.accounts.redeem(link.code)).record.tags == TAGS


async def test_a_machine_that_loses_the_tag_is_gone_for_it_at_once(case: Case) -> None:
    assert (await case.ask("POST", "/v1/machine/red-one/exec", json={"instruction": {"code": "1"}})).status_code == 200
    await case.running.machines.update("red-one", tags={})
    assert (await case.ask("POST", "/v1/machine/red-one/exec", json={"instruction": {"code": "1"}})).status_code == 404


@pytest.mark.parametrize("end", ["connect", "repl"])
async def test_a_socket_ends_when_the_machine_loses_the_tag(case: Case, end: str) -> None:
    headers = {"Authorization": f"Bearer {case.token}"}
    async with connect(f"{case.running.ws}/v1/machine/red-one/{end}", additional_headers=headers) as socket:
        await socket.recv()
        await case.running.machines.update("red-one", tags={"team": "red", "more": "yes"})  # still one of its own
        await socket.send('{"type": "exec", "instruction": {"code": "1"}, "request_id": 1}')
        while "request_id" not in str(await socket.recv()):
            pass
        await case.running.machines.update("red-one", tags={"team": "blue"})
        await case.running.machines.run("red-one", "'secret of blue'")
        told: list[str] = []
        async with asyncio.timeout(10):
            with pytest.raises(ConnectionClosed):
                while True:
                    told.append(str(await socket.recv()))
    assert "secret of blue" not in "".join(told)


async def test_a_followed_tape_ends_when_the_machine_loses_the_tag_though_nothing_happens_in_it(case: Case) -> None:
    headers = {"Authorization": f"Bearer {case.token}", "Accept": "application/x-ndjson"}
    async with (
        asyncio.timeout(20),
        httpx2.AsyncClient(base_url=case.running.url, timeout=30, headers=headers) as client,
        client.stream("GET", "/v1/machine/red-one/tape", params={"follow": "true"}) as tape,
    ):
        parts = tape.aiter_bytes()
        await anext(parts)
        await case.running.machines.update("red-one", tags={})
        with pytest.raises(httpx2.RemoteProtocolError):
            async for _ in parts:
                pass


async def test_what_is_the_whole_accounts_is_not_for_it(case: Case) -> None:
    for method, path, body in (
        ("GET", "/v1/tokens", None),
        ("POST", "/v1/tokens", {}),
        ("POST", "/v1/links", None),
        ("GET", "/v1/secrets", None),
        ("PUT", "/v1/egress", {"egress": "public"}),
        ("GET", "/v1/usage", None),
        ("GET", "/v1/audit", None),
        ("GET", "/v1/webhooks", None),
    ):
        told = await case.ask(method, path, json=body)
        assert told.status_code == 403, path
        assert "team=red" in told.text
    assert (await case.ask("GET", "/v1/account")).json()["token"]["tags"] == TAGS


async def test_tokens_made_by_tokens_have_no_more_tags_together_than_one_may_have(case: Case) -> None:
    accounts = case.running.accounts
    red = await accounts.identify(case.token)
    made = await accounts.new_token(red, tags={f"tag{n}": "x" for n in range(15)})
    assert len(made.record.tags) == 16
    with pytest.raises(InvalidInput, match="16"):
        await accounts.new_token(await accounts.identify(made.token), tags={"more": "x"})


async def test_tags_that_are_none_are_refused(case: Case) -> None:
    for tags in ({"": "x"}, {"k": "a\nb"}, {str(n): "x" for n in range(17)}, {"k": "\N{SNAKE}" * 65}, {"\N{SNAKE}" * 65: "v"}):
        assert (await case.ask("POST", "/v1/tokens", case.running.token, json={"tags": tags})).status_code == 400
    assert (await case.ask("POST", "/v1/tokens", case.running.token, json={"tags": {"k": "\N{SNAKE}" * 64}})).status_code == 200  # 256 bytes
    made = await case.ask("POST", "/v1/tokens", case.running.token, json={"tags": TAGS, "scopes": ["read"]})
    assert made.json()["tags"] == TAGS
    listed = (await case.ask("GET", "/v1/tokens", case.running.token)).json()["tokens"]
    assert TAGS in [token["tags"] for token in listed]
