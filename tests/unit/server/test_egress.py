"""Egress and secrets over HTTP: who may say what, whom it concerns, and what is told to those who ask."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from everforge.audit.settings import AuditSettings
from everforge.engine import fake
from everforge.store.audit import AuditQuery
from everforge.store.egress import AttemptRecord
from everforge.wire.audit import plain
from kit.doorway import PATIENCE_SECONDS
from kit.service import Running, service

VALUE = "a-value-that-nobody-is-told"
HOSTS = ["api.example.com"]


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    async with service(audit=AuditSettings(audit_flush_seconds=0.01)) as running:
        yield running


@pytest.fixture
async def client(running: Running) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=running.url, headers=running.headers) as client:
        yield client


@pytest.fixture
async def ada(running: Running) -> AsyncIterator[httpx2.AsyncClient]:
    """Another account."""
    async with httpx2.AsyncClient(base_url=running.url, headers={"Authorization": f"Bearer {await running.account('ada')}"}) as client:
        yield client


def refused(answer: httpx2.Response, status: int, code: str, words: str = "") -> None:
    told = answer.json()
    assert (answer.status_code, told["code"]) == (status, code)
    assert words in told["message"], told


# --- policies ----------------------------------------------------------------------------------------------------------------------------------


class Considered:
    """A door that hears when it shall think again, and what its machine may reach by then."""

    def __init__(self, sock: socket.socket, record: Any) -> None:
        self._sock = sock
        self._record = record
        self.reconsidered: list[Any] = []

    def begin(self, nonce: bytes) -> None: ...

    def reconsider(self) -> None:
        self.reconsidered.append(self._record().egress)

    async def close(self) -> None:
        self._sock.close()


async def test_a_change_is_told_to_the_door_of_a_machine_that_is_awake(
    running: Running, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the change is answered: what the door then cuts was cut when the owner hears that it is done."""
    made: list[Considered] = []

    def opened(sock: socket.socket, record: Any) -> Considered:
        made.append(Considered(sock, record))
        return made[-1]

    theirs: list[socket.socket] = []

    def egress(sandbox: object) -> socket.socket:
        ours, inside = socket.socketpair()
        theirs.append(inside)
        return ours

    monkeypatch.setattr(fake.FakeSandbox, "egress", egress)
    monkeypatch.setattr(running.service.egress, "open", opened)
    await client.post("/v1/machine/new", json={"name": "one", "egress": "none"})
    await client.post("/v1/machine/one/exec", json={"instruction": {"code": "1"}})
    await client.get("/v1/machine/one/exec/0/result")
    [door] = made
    assert door.reconsidered == []
    assert (await client.post("/v1/machine/one/egress", json={"allow": HOSTS})).json() == {"egress": "list", "egress_allow": HOSTS}
    assert door.reconsidered == [{"policy": "list", "allow": HOSTS}]
    refused(await client.post("/v1/machine/one/egress", json={"deny": ["other.example"]}), 400, "InvalidInput", "there is no rule")
    await client.patch("/v1/machine/one", json={"tags": {"a": "b"}})
    assert len(door.reconsidered) == 1
    await client.post("/v1/machine/one/hibernate")
    assert (await client.post("/v1/machine/one/egress", json={"egress": "none"})).json() == {"egress": "none", "egress_allow": []}
    assert len(door.reconsidered) == 1  # there is none while it sleeps: the next one asks for the policy as it is then
    for sock in theirs:
        sock.close()


async def test_a_policy_is_shown_as_it_is_and_a_fork_has_its_sources(client: httpx2.AsyncClient) -> None:
    await client.post("/v1/machine/new", json={"name": "one", "egress": "list", "egress_allow": ["API.example.com", "*.example.org"]})
    told = {"egress": "list", "egress_allow": ["api.example.com", "*.example.org"]}
    assert (await client.get("/v1/machine/one/egress")).json() == told
    shown = (await client.get("/v1/machine/one")).json()
    assert {"egress": shown["egress"], "egress_allow": shown["egress_allow"]} == told
    await client.post("/v1/machine/one/fork", json={"names": ["two"]})
    await client.post("/v1/machine/one/egress", json={"egress": "none"})
    assert (await client.get("/v1/machine/two/egress")).json() == told


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"egress": "everything"}, "egress"),
        ({"allow": ["a b"]}, "'a b' is not a rule"),
        ({"allow": "api.example.com"}, "allow"),
        ({"deny": ["other.example"]}, "there is no rule other.example"),
        ({"egress": "none", "allow": HOSTS}, "take `list`"),
        ({"allow": [f"h{n}.example" for n in range(201)]}, "200 egress rules"),
        ({"allowed": HOSTS}, "allowed"),
    ],
)
async def test_a_change_that_cannot_be_is_refused_in_words_and_changes_nothing(client: httpx2.AsyncClient, body: dict[str, Any], words: str) -> None:
    await client.post("/v1/machine/new", json={"name": "one", "egress": "list", "egress_allow": ["kept.example"]})
    refused(await client.post("/v1/machine/one/egress", json=body), 400, "InvalidInput", words)
    assert (await client.get("/v1/machine/one/egress")).json() == {"egress": "list", "egress_allow": ["kept.example"]}


async def test_other_peoples_machines_are_not_there(client: httpx2.AsyncClient, ada: httpx2.AsyncClient) -> None:
    await client.post("/v1/machine/new", json={"name": "one", "egress": "none"})
    for name in ("one", "nobody"):
        refused(await ada.get(f"/v1/machine/{name}/egress"), 404, "MachineNotFound", name)
        refused(await ada.post(f"/v1/machine/{name}/egress", json={"egress": "public"}), 404, "MachineNotFound", name)
        refused(await ada.get(f"/v1/machine/{name}/egress/log"), 404, "MachineNotFound", name)
    assert (await client.get("/v1/machine/one/egress")).json()["egress"] == "none"


async def test_a_default_is_an_accounts_own(client: httpx2.AsyncClient, ada: httpx2.AsyncClient) -> None:
    assert (await ada.put("/v1/egress", json={"egress": "list", "egress_allow": HOSTS})).json() == {"egress": "list", "egress_allow": HOSTS}
    refused(await ada.put("/v1/egress", json={"egress": "none", "egress_allow": HOSTS}), 400, "InvalidInput", "take `list`")
    assert (await ada.get("/v1/egress")).json() == {"egress": "list", "egress_allow": HOSTS}
    assert (await client.get("/v1/egress")).json() == {"egress": "packages", "egress_allow": []}
    for who, told in ((ada, "list"), (client, "packages")):
        name = (await who.post("/v1/machine/new", json={})).json()["machine_name"]
        assert (await who.get(f"/v1/machine/{name}/egress")).json()["egress"] == told
    assert (await ada.put("/v1/egress", json={})).json() == {"egress": "packages", "egress_allow": []}


# --- the log -----------------------------------------------------------------------------------------------------------------------------------


async def test_the_log_comes_in_pages_newest_first_each_attempt_once(running: Running, client: httpx2.AsyncClient) -> None:
    await client.post("/v1/machine/new", json={"name": "one"})
    await client.post("/v1/machine/new", json={"name": "two"})
    await note(running, "one", 5)
    seen: list[str] = []
    more = ""
    for size in (2, 2, 1):
        page = (await client.get(f"/v1/machine/one/egress/log?limit=2{more}")).json()
        assert len(page["attempts"]) == size
        seen += [attempt["host"] for attempt in page["attempts"]]
        more = f"&before={page['next']}"
    assert page["next"] is None
    assert seen == [f"h{n}.example" for n in (5, 4, 3, 2, 1)]
    whole = (await client.get("/v1/machine/one/egress/log")).json()
    assert ([attempt["host"] for attempt in whole["attempts"]], whole["next"]) == (seen, None)
    assert whole["attempts"][0]["secrets"] == ["API_KEY", "OTHER"]
    assert (await client.get("/v1/machine/two/egress/log")).json() == {"attempts": [], "next": None}
    for query in ("limit=0", "limit=1001", "limit=-1", "limit=x", "before=-1", "before=x"):
        refused(await client.get(f"/v1/machine/one/egress/log?{query}"), 400, "InvalidInput", query.partition("=")[0])


async def note(running: Running, name: str, count: int) -> None:
    """Machines of the fake engine have no way out: what one has tried is put where its door would put it."""
    assert running.house is not None
    machine = (await running.machines.get(name)).record.id
    told: dict[str, Any] = {
        "port": 443, "speech": "tls", "method": "GET", "path": "/", "verdict": "allowed", "why": "", "allowed_by": "public", "address": "",
        "sent_bytes": 0, "received_bytes": 0, "secrets": "API_KEY OTHER", "began_at": 0.0, "ended_at": None,
    }  # fmt: skip
    records = [AttemptRecord(machine=machine, number=number, host=f"h{number}.example", **told) for number in range(1, count + 1)]
    await running.house.store.egress.note(records, 100)


# --- secrets -----------------------------------------------------------------------------------------------------------------------------------


async def test_secrets_are_an_accounts_own_and_so_are_their_placeholders(client: httpx2.AsyncClient, ada: httpx2.AsyncClient) -> None:
    mine = (await client.put("/v1/secrets/API_KEY", json={"value": VALUE, "hosts": HOSTS})).json()
    assert (await ada.get("/v1/secrets")).json() == {"secrets": []}
    refused(await ada.delete("/v1/secrets/API_KEY"), 404, "SecretNotFound", "API_KEY")
    theirs = (await ada.put("/v1/secrets/API_KEY", json={"value": VALUE, "hosts": ["other.example"]})).json()
    assert theirs["placeholder"] != mine["placeholder"]
    assert (await client.get("/v1/secrets")).json() == {"secrets": [mine]}
    assert (await ada.delete("/v1/secrets/API_KEY")).json() == {"deleted": True}
    assert (await client.get("/v1/secrets")).json() == {"secrets": [mine]}


async def test_no_answer_and_no_entry_of_the_audit_log_has_the_value(running: Running, client: httpx2.AsyncClient) -> None:
    answers = [
        await client.put("/v1/secrets/API_KEY", json={"value": VALUE, "hosts": HOSTS, "header": "X-Key: {}"}),
        await client.put("/v1/secrets/API_KEY", json={"value": VALUE, "hosts": []}),
        await client.put("/v1/secrets/API-KEY", json={"value": VALUE, "hosts": HOSTS}),
        await client.put("/v1/secrets/API_KEY", json={"value": [VALUE], "hosts": HOSTS}),
        await client.put("/v1/secrets/API_KEY", json={"value": VALUE, "hosts": HOSTS, VALUE: 1}),
        await client.put("/v1/secrets/API_KEY", json={"value": f"{VALUE}\n", "hosts": HOSTS}),
        await client.get("/v1/secrets"),
        await client.delete("/v1/secrets/API_KEY"),
    ]
    assert [answer.status_code for answer in answers] == [200, 400, 400, 400, 400, 400, 200, 200]
    found = await entries(running)
    outcomes = [(e["action"], e["outcome"]) for e in found]
    assert outcomes[0] == ("secret.set", "ok")
    assert outcomes[-1] == ("secret.delete", "ok")
    assert "secret.set" in [action for action, outcome in outcomes if outcome == "InvalidInput"]
    # A key that nobody knows is named to whoever sent it; that one was the value is the sender's own doing.
    assert not [answer.text for answer in answers[:4] + answers[5:] if VALUE in answer.text]
    assert VALUE not in str(found)
    assert "api.example.com" not in str(found[-1]["detail"])


async def entries(running: Running) -> list[dict[str, Any]]:
    recorder = running.service.witness.recorder
    async with asyncio.timeout(PATIENCE_SECONDS):
        while recorder.waiting:
            await asyncio.sleep(0.005)
    return [plain(entry) for entry in await recorder.book.entries(AuditQuery())]


async def test_changes_of_egress_are_entries_of_the_audit_log(running: Running, client: httpx2.AsyncClient) -> None:
    await client.post("/v1/machine/new", json={"name": "one"})
    await client.post("/v1/machine/one/egress", json={"allow": HOSTS})
    await client.post("/v1/machine/one/egress", json={"allow": ["a b"]})
    await client.put("/v1/egress", json={"egress": "none"})
    await client.get("/v1/egress")
    told = [(e["action"], e["machine"], e["outcome"]) for e in await entries(running)][1:]
    assert told == [("egress.change", "one", "ok"), ("egress.change", "one", "InvalidInput"), ("egress.default", None, "ok")]


@pytest.mark.parametrize("value", ["short-7", "x" * 4097, " before-it", "line\nbreak", "ümlaut-inside", ""])
async def test_a_value_that_could_not_be_put_in_is_refused_and_the_old_one_stays(client: httpx2.AsyncClient, value: str) -> None:
    before = (await client.put("/v1/secrets/API_KEY", json={"value": VALUE, "hosts": HOSTS})).json()
    refused(await client.put("/v1/secrets/API_KEY", json={"value": value, "hosts": HOSTS}), 400, "InvalidInput", "8 to 4096 characters")
    assert (await client.get("/v1/secrets")).json()["secrets"] == [before]


async def test_an_account_has_so_many_secrets_and_can_still_change_them(client: httpx2.AsyncClient) -> None:
    for n in range(100):
        assert (await client.put(f"/v1/secrets/S{n}", json={"value": VALUE, "hosts": [f"api-{n}.example.com"]})).status_code == 200
    answer = await client.put("/v1/secrets/ONE_MORE", json={"value": VALUE, "hosts": HOSTS})
    assert answer.json()["code"] == "TooMany"
    assert (await client.put("/v1/secrets/S7", json={"value": f"{VALUE}-2", "hosts": HOSTS})).status_code == 200
