"""The audit log, from outside: what is in it, what is not, and who may read it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from everforge import AsyncEverforge
from everforge.accounts.settings import AccountSettings
from everforge.audit.refusals import Refusals
from everforge.audit.settings import AuditSettings
from everforge.machines.service import Machines
from everforge.server.app import DOORS
from everforge.server.doors.connect import ACTIONS
from everforge.server.sockets import CREATES
from everforge.server.witness import hash_of_code
from everforge.signals import Signal
from everforge.store.audit import AuditQuery, size_bytes
from everforge.store.memory import MemoryStore
from everforge.store.memory_audit import MemoryAudit
from everforge.store.sql.store import SqlStore
from everforge.wire.api import LogInLink
from everforge.wire.audit import DROPPED, GENESIS, OK, PRUNED, UNREADABLE, AuditEntry, AuditHead, Chain, ChainBroken, Seen, canonical, moment, plain
from everforge.wire.errors import EverforgeError
from kit.auditlogs import LetGoMeanwhile
from kit.service import QUIET, Running, service

SECRET = "xyzzy-never-to-be-written-down"
QUICK = AuditSettings(audit_flush_seconds=0.01)


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    async with service(audit=QUICK) as running:
        yield running


@pytest.fixture
async def client(running: Running) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=running.url, headers=running.headers) as client:
        yield client


async def entries(running: Running, **query: Any) -> list[dict[str, Any]]:
    """All that were made, also those that are still on their way."""
    recorder = running.service.witness.recorder
    async with asyncio.timeout(5):
        while recorder.waiting:
            await asyncio.sleep(0.005)
    return [plain(entry) for entry in await recorder.book.entries(AuditQuery(**query))]


async def test_every_change_is_an_entry_and_no_read_is(running: Running, client: httpx2.AsyncClient) -> None:
    name = (await client.post("/v1/machine/new", json={"name": "one"})).json()["machine_name"]
    await client.post(f"/v1/machine/{name}/exec", json={"instruction": {"code": "x = 1"}})
    await client.get(f"/v1/machine/{name}/exec/0/result")
    await client.post(f"/v1/machine/{name}/interrupt")
    await client.put(f"/v1/machine/{name}/files/notes.txt", content=b"words")
    await client.delete(f"/v1/machine/{name}/files/notes.txt")
    await client.post(f"/v1/machine/{name}/snapshots", json={"name": "before"})
    await client.post(f"/v1/machine/{name}/rollback", json={"to": "before"})
    await client.post(f"/v1/machine/{name}/hibernate")
    await client.post(f"/v1/machine/{name}/fork", json={"names": ["two"]})
    await client.post(f"/v1/machine/{name}/reset")
    await client.patch(f"/v1/machine/{name}", json={"tags": {"a": "b"}})
    await client.get("/v1/machine/list")
    await client.post("/v1/machine/list", json={})
    await client.delete(f"/v1/machine/{name}")
    await client.delete(f"/v1/machine/{name}")
    found = await entries(running)
    assert [(e["action"], e["outcome"]) for e in found] == [
        ("machine.create", "ok"), ("machine.exec", "ok"), ("machine.interrupt", "ok"), ("file.write", "ok"), ("file.delete", "ok"), ("snapshot.take", "ok"),
        ("machine.rollback", "ok"), ("machine.hibernate", "ok"), ("machine.fork", "ok"), ("machine.reset", "ok"), ("machine.change", "ok"),
        ("machine.delete", "ok"), ("machine.delete", "MachineNotFound"),
    ]  # fmt: skip
    assert {e["machine"] for e in found} == {"one"}
    assert {(e["account"], e["account_name"], e["address"]) for e in found} == {("owner", "owner", "127.0.0.1")}
    assert {e["token"] for e in found} == {running.token.split(".")[0]}
    assert found[1]["detail"] == {"instruction_seq": 0, "code_sha256": hash_of_code("x = 1")}
    assert found[3]["detail"] == {"path": "notes.txt"}
    assert found[8]["detail"]["machine_names"] == ["two"]
    chain = Chain()
    for entry in found:
        chain.add(entry)
    chain.end(await running.service.witness.recorder.book.head())


async def test_what_comes_over_websockets_is_an_entry_too(running: Running) -> None:
    for path, more in (("repl", {}), ("connect", {"interrupt": False})):
        async with connect(f"{running.ws}/v1/machine/new/{path}", additional_headers=running.headers) as socket:
            name = json.loads(await socket.recv())["machine_name"]
            await socket.send(json.dumps({"type": "exec", "instruction": {"code": SECRET}, "request_id": 1, **more}))
            while json.loads(await socket.recv())["type"] not in ("result", "ended"):
                pass
        found = await entries(running, machine=name)
        assert [(e["action"], e["outcome"], e["address"]) for e in found] == [
            ("machine.create", "ok", "127.0.0.1"),
            ("machine.exec", "ok", "127.0.0.1"),
        ]
        assert found[1]["detail"] == {"instruction_seq": 0, "code_sha256": hash_of_code(SECRET)}


async def told(socket: ClientConnection, *types: str) -> dict[str, Any]:
    """The next message of one of these types."""
    while (message := json.loads(await socket.recv()))["type"] not in types:
        pass
    return message


@pytest.mark.parametrize(("door", "what"), [("repl", "exec"), ("connect", "exec"), ("connect", "interrupt")])
async def test_what_was_done_is_an_entry_also_when_the_token_is_revoked_before_it_is_answered(
    running: Running, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch, door: str, what: str
) -> None:
    await client.post("/v1/machine/new", json={"name": "one"})
    owner = await running.accounts.identify(running.token)
    token = await running.accounts.new_token(owner)
    act = getattr(Machines, what)

    async def act_and_be_cut(*args: Any, **options: Any) -> Any:
        done = await act(*args, **options)
        await running.accounts.revoke(owner, token.record.id)
        for _ in range(20):  # so that the cut comes now, and not later
            await asyncio.sleep(0)
        return done

    monkeypatch.setattr(Machines, what, act_and_be_cut)
    async with connect(f"{running.ws}/v1/machine/one/{door}", additional_headers={"Authorization": f"Bearer {token.token}"}) as socket:
        await socket.send(json.dumps({"type": what, **({"instruction": {"code": "1"}} if what == "exec" else {})}))
        await socket.wait_closed()
    assert socket.close_code == 4001
    assert [(e["action"], e["outcome"]) for e in await entries(running)] == [("machine.create", "ok"), (f"machine.{what}", "ok")]


async def test_interrupts_and_answers_over_a_websocket_are_entries_and_completions_are_none(running: Running, client: httpx2.AsyncClient) -> None:
    await client.post("/v1/machine/new", json={"name": "one"})
    async with connect(f"{running.ws}/v1/machine/one/connect", additional_headers=running.headers) as socket:
        for message in ({"type": "interrupt"}, {"type": "answer", "instruction": 7, "call": 0, "value": SECRET}, {"type": "complete", "code": "pri"}):
            await socket.send(json.dumps({"cursor": 3, **message} if message["type"] == "complete" else message))
            await told(socket, "reply", "error")
    found = (await entries(running))[1:]
    assert [(e["action"], e["outcome"], e["machine"]) for e in found] == [
        ("machine.interrupt", "ok", "one"),
        ("machine.answer", "InstructionNotFound", "one"),
    ]
    assert SECRET not in json.dumps(found)


@pytest.mark.parametrize("door", ["repl", "connect"])
async def test_what_is_refused_or_fails_over_a_websocket_is_an_entry(
    running: Running, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    await client.post("/v1/machine/new", json={"name": "one"})

    async def fail(*args: Any, **options: Any) -> None:
        raise RuntimeError("a mistake")

    async with connect(f"{running.ws}/v1/machine/one/{door}", additional_headers=running.headers) as socket:
        for message in ({"instruction": {"code": 7}}, {"instruction": {"code": "1"}, "request_id": []}, {"instruction": {"code": "1"}}):
            if "request_id" in message:
                monkeypatch.setattr(Machines, "exec", fail)
            await socket.send(json.dumps({"type": "exec", **message}))
            await told(socket, "result", "error")
    found = (await entries(running))[1:]
    assert [(e["action"], e["outcome"]) for e in found] == [
        ("machine.exec", "InvalidInput"),
        ("machine.exec", "InvalidInput"),
        ("machine.exec", EverforgeError.code),
    ]


@pytest.mark.parametrize("door", ["repl", "connect"])
async def test_a_handshake_that_is_refused_is_an_entry(running: Running, client: httpx2.AsyncClient, door: str) -> None:
    await running.account("ada")
    await client.post("/v1/machine/new", json={"name": "one"})
    weak, reader, good = await running.scoped("exec", "read"), await running.scoped("read"), await running.account("bob")
    await client.patch("/v1/accounts/bob/quota", json={"machines": 1})
    await client.post("/v1/machine/new", headers={"Authorization": f"Bearer {good}"})
    before = len(await entries(running))
    for token, name in (("nonsense", "one"), ("nonsense", "new"), (reader, "one"), (weak, "new"), (good, "new"), (good, "nothing")):
        with pytest.raises(InvalidStatus):
            async with connect(f"{running.ws}/v1/machine/{name}/{door}", additional_headers={"Authorization": f"Bearer {token}"}):
                pass
    found = (await entries(running))[before:]
    assert [(e["action"], e["outcome"], e["account_name"], e["machine"]) for e in found] == [
        ("read", "Unauthenticated", None, "one"),
        ("machine.create", "Unauthenticated", None, None),
        ("read", "Forbidden", "owner", "one"),
        ("machine.create", "Forbidden", "owner", None),
        ("machine.create", "QuotaExceeded", "bob", None),
    ]


@pytest.mark.parametrize("door", ["repl", "connect"])
async def test_a_machine_that_was_made_over_a_websocket_is_written_down_before_it_is_answered(tmp_path: Path, door: str) -> None:
    store = await SqlStore.open(tmp_path / "store.db")
    async with (
        service(audit=AuditSettings(audit_flush_seconds=60.0), store=store) as running,
        connect(f"{running.ws}/v1/machine/new/{door}", additional_headers=running.headers) as socket,
    ):
        name = json.loads(await socket.recv())["machine_name"]
        assert [(e.action, e.machine) for e in await store.audit.entries(AuditQuery())] == [("machine.create", name)]
    await store.close()


async def test_tokens_accounts_and_log_ins_are_entries(running: Running, client: httpx2.AsyncClient) -> None:
    made = (await client.post("/v1/tokens", json={"name": "notebook", "scopes": ["read"]})).json()
    await client.delete(f"/v1/tokens/{made['id']}")
    await client.post("/v1/accounts", json={"account_name": "ada"})
    await client.post("/v1/invitations", json={})
    link = (await client.post("/v1/links")).json()["url"]
    async with httpx2.AsyncClient(base_url=running.url) as stranger:
        given = (await stranger.post(link)).json()["token"]
        assert (await stranger.post(link)).status_code == 404
        await stranger.post("/internal/signup", json={"email": "bob@example.org", "account_name": "bob"})
    await client.delete("/v1/accounts/ada")
    found = await entries(running)
    assert [(e["action"], e["outcome"], e["account_name"]) for e in found] == [
        ("token.create", "ok", "owner"), ("token.revoke", "ok", "owner"), ("account.create", "ok", "owner"), ("account.invite", "ok", "owner"),
        ("login.link", "ok", "owner"), ("login.use", "ok", "owner"), ("login.use", "LinkInvalid", None), ("account.signup", "ok", None), ("account.delete", "ok", "owner"),
    ]  # fmt: skip
    assert found[0]["detail"] == {"id": made["id"], "scopes": ["read"]}
    assert (found[5]["account"], found[5]["token"]) == ("owner", given.split(".")[0])
    assert (found[2]["detail"], found[5]["detail"], found[6]["detail"]) == ({"account": "ada"}, {"account": "owner"}, {})


async def test_an_entry_says_what_was_changed_and_nothing_of_what_is_secret(running: Running, client: httpx2.AsyncClient) -> None:
    rules = [f"host{n}.example.com" for n in range(3)]
    await client.post("/v1/machine/new", json={"name": "one", "egress": "list", "egress_allow": rules[:1]})
    await client.post("/v1/machine/one/egress", json={"allow": rules[1:], "deny": rules[:1]})
    await client.put("/v1/egress", json={"egress": "public"})
    await client.patch("/v1/machine/one", json={"egress": "none", "tags": {"a": SECRET}, "metadata": {"b": SECRET}, "idle_seconds": 60})
    await client.put("/v1/secrets/API_KEY", json={"value": SECRET, "hosts": rules[:1]})
    await client.post("/v1/webhooks", json={"url": f"https://example.org/{SECRET}?{SECRET}", "events": ["machine.broken"]})
    made = (await client.post("/v1/tokens", json={"scopes": ["read"], "tags": {"team": "red"}})).json()
    found = await entries(running)
    assert [e for e in found if e["outcome"] != "ok"] == []
    details = {e["action"]: e["detail"] for e in found}
    webhook = details["webhook.add"].pop("id")
    assert webhook in (await client.get("/v1/webhooks")).text
    assert details == {
        "machine.create": {"egress": "list", "egress_allow": rules[:1]},
        "egress.change": {"egress": "list", "allow": rules[1:], "deny": rules[:1]},
        "egress.default": {"egress": "public", "egress_allow": []},
        "machine.change": {"changed": ["egress", "idle_seconds", "metadata", "tags"], "egress": "none"},
        "secret.set": {"secret": "API_KEY", "hosts": rules[:1]},
        "webhook.add": {"host": "example.org", "events": ["machine.broken"]},
        "token.create": {"id": made["id"], "scopes": ["read"], "tags": {"team": "red"}},
    }
    assert SECRET not in json.dumps(found)


async def test_what_an_entry_says_is_short_and_says_itself_that_more_was_asked_for(running: Running, client: httpx2.AsyncClient) -> None:
    await client.post("/v1/machine/new", json={"name": "one"})
    hosts = [f"{n}.{'a' * 60}.{'b' * 60}.{'c' * 60}.example" for n in range(100)]
    tags = {f"{n}{'😀' * 60}": "😀" * 64 for n in range(16)}
    assert (await client.post("/v1/machine/one/egress", json={"allow": hosts})).status_code == 200
    assert (await client.post("/v1/tokens", json={"tags": tags})).status_code == 200
    assert (await client.post("/v1/machine/one/egress", json={"deny": hosts[:2]})).status_code == 200
    assert (await client.delete(f"/v1/machine/one/files/{'d' * 200}/{'e' * 3000}")).status_code >= 400
    _, allowed, token, denied, deleted = await entries(running)
    assert all(len(canonical(entry["detail"])) <= 2048 for entry in (allowed, token, denied, deleted))
    assert (allowed["detail"]["egress"], allowed["detail"]["allow"][0][:20], allowed["detail"]["deny"]) == ("packages", hosts[0][:20], [])
    assert allowed["detail"]["shortened"] > 1
    assert (token["detail"]["scopes"], token["detail"]["shortened"] > 1) == (["exec", "manage", "read"], True)
    assert denied["detail"] == {"egress": "packages", "allow": [], "deny": hosts[:2]}
    assert (deleted["detail"]["path"][:200], deleted["detail"]["shortened"]) == ("d" * 200, 1)


async def test_who_logs_in_sees_it_in_the_log(running: Running) -> None:
    token = await running.account("ada")
    async with httpx2.AsyncClient(base_url=running.url, headers={"Authorization": f"Bearer {token}"}) as ada:
        link = (await ada.post("/v1/links")).json()["url"]
        async with httpx2.AsyncClient() as stranger:
            given = (await stranger.post(link)).json()["token"]
        found = (await ada.get("/v1/audit")).json()["entries"]
    assert [(e["action"], e["token"]) for e in found] == [("login.link", token.split(".")[0]), ("login.use", given.split(".")[0])]


async def test_a_mistake_of_the_servers_is_an_entry(running: Running, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*args: Any, **options: Any) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(Machines, "create", fail)
    assert (await client.post("/v1/machine/new")).status_code == 500
    for door in ("repl", "connect"):
        with pytest.raises(InvalidStatus):
            async with connect(f"{running.ws}/v1/machine/new/{door}", additional_headers=running.headers):
                pass
    assert [(e["action"], e["outcome"]) for e in await entries(running)] == [("machine.create", EverforgeError.code)] * 3


async def test_refusals_for_want_of_a_good_token_are_entries_also_of_reads(running: Running, client: httpx2.AsyncClient) -> None:
    reader, gone = await running.scoped("read"), await running.scoped("manage")
    await client.delete(f"/v1/tokens/{gone.split('.')[0]}")
    async with httpx2.AsyncClient(base_url=running.url) as stranger:
        for token, path, method in (
            (None, "/v1/machine/list", "GET"),
            (gone, "/v1/audit", "GET"),
            (reader, "/v1/machine/new", "POST"),
            ("nonsense", "/v1/whoami", "GET"),
        ):
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            assert (await stranger.request(method, path, headers=headers)).status_code in (401, 403)
    found = (await entries(running))[1:]
    assert [(e["action"], e["outcome"], e["token"], e["account"]) for e in found] == [
        ("read", "Unauthenticated", None, None),
        ("read", "Unauthenticated", gone.split(".")[0], None),
        ("machine.create", "Forbidden", reader.split(".")[0], "owner"),
        ("read", "Unauthenticated", None, None),
    ]
    assert found[1]["detail"] == {"route": "GET /v1/audit"}


async def test_the_address_is_that_of_the_peer_whatever_a_client_says_of_itself(running: Running, client: httpx2.AsyncClient) -> None:
    forged = {"X-Forwarded-For": "203.0.113.7" * 1000, "X-Forwarded-Proto": "https"}
    await client.post("/v1/machine/new", json={"name": "one"}, headers=forged)
    async with connect(f"{running.ws}/v1/machine/one/connect", additional_headers={**running.headers, "X-Forwarded-For": "203.0.113.7"}) as socket:
        await socket.send(json.dumps({"type": "exec", "instruction": {"code": "1"}}))
        while json.loads(await socket.recv())["type"] != "reply":
            pass
    assert [(e["action"], e["address"]) for e in await entries(running)] == [("machine.create", "127.0.0.1"), ("machine.exec", "127.0.0.1")]


async def test_nobody_gets_around_the_limits_of_an_address_by_naming_others() -> None:
    limits = AccountSettings(signup="open", signups_per_hour=2, stranger_requests_per_second=0.0)
    async with (
        service(accounts=limits, audit=replace(QUICK, audit_refusals_per_minute=3)) as running,
        httpx2.AsyncClient(base_url=running.url) as stranger,
    ):
        answers = [
            (await stranger.post("/internal/signup", json={"email": f"a{n}@example.org", "account_name": f"account{n}"}, headers={"X-Forwarded-For": f"203.0.113.{n}"}))
            for n in range(4)
        ]  # fmt: skip
        assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
        for n in range(4):
            await stranger.get("/v1/whoami", headers={"X-Forwarded-For": f"203.0.113.{n}"})
        found = await entries(running)
    assert [e["action"] for e in found] == [*["account.signup"] * 4, "read"]


async def test_nothing_secret_is_in_it(running: Running, client: httpx2.AsyncClient) -> None:
    body = {"name": "one", "env": {"KEY": SECRET}, "tags": {"a": SECRET}, "metadata": {"b": SECRET}}
    await client.post("/v1/machine/new", json=body)
    await client.post(
        "/v1/machine/one/exec", json={"instruction": {"code": f"print('{SECRET}')", "env": {"KEY": SECRET}}}, headers={"Idempotency-Key": SECRET}
    )
    await client.put("/v1/machine/one/files/notes.txt", content=SECRET.encode())
    tokens = [
        (await client.post("/v1/tokens", json={})).json()["token"],
        (await client.post("/v1/accounts", json={"account_name": "ada"})).json()["token"],
    ]
    url = (await client.post("/v1/links")).json()["url"]
    tokens.append((await client.post(url)).json()["token"])
    tokens.append((await client.post("/v1/invitations", json={})).json()["invitation"])
    text = json.dumps(await entries(running))
    for secret in (SECRET, url.rsplit("/", 1)[1], running.token.split(".")[1], *(token.split(".")[1] for token in tokens)):
        assert secret not in text


async def test_an_account_sees_its_own_entries_and_the_owner_all(running: Running, client: httpx2.AsyncClient) -> None:
    token = await running.account("ada")
    async with httpx2.AsyncClient(base_url=running.url, headers={"Authorization": f"Bearer {token}"}) as ada:
        await ada.post("/v1/machine/new", json={"name": "hers"})
        await client.post("/v1/machine/new", json={"name": "mine"})
        page = (await ada.get("/v1/audit")).json()
        assert ([e["machine"] for e in page["entries"]], page["head"]) == (["hers"], None)
        assert (await ada.get("/v1/audit", params={"account": "ada"})).json()["entries"] == page["entries"]
        refused = await ada.get("/v1/audit", params={"account": "owner"})
        assert (refused.status_code, refused.json()["code"]) == (403, "Forbidden")
    assert [e["machine"] for e in (await client.get("/v1/audit", params={"action": "machine"})).json()["entries"]] == ["hers", "mine"]
    assert [e["machine"] for e in (await client.get("/v1/audit", params={"account": "ada", "action": "machine"})).json()["entries"]] == ["hers"]


async def test_pages_go_on_where_the_last_one_ended(running: Running, client: httpx2.AsyncClient) -> None:
    for n in range(5):
        await client.post("/v1/machine/new", json={"name": f"m{n}"})
    seen, after = [], 0
    while after is not None:
        page = (await client.get("/v1/audit", params={"limit": 2, "after": after})).json()
        seen += [e["machine"] for e in page["entries"]]
        after = page["next"]
    assert seen == [f"m{n}" for n in range(5)]
    assert [e["machine"] for e in (await client.get("/v1/audit", params={"limit": 2, "last": True})).json()["entries"]] == ["m3", "m4"]
    for wrong in ({"limit": 0}, {"limit": 10**9}, {"since": "yesterday"}, {"after": -1}, {"nonsense": 1}):
        assert (await client.get("/v1/audit", params=wrong)).status_code == 400


async def test_a_client_that_checks_the_log_looks_at_where_it_ends_and_at_what_was_kept_of_it(running: Running, client: httpx2.AsyncClient) -> None:
    for name in ("one", "two", "three"):
        await client.post("/v1/machine/new", json={"name": name})
    book = running.service.witness.recorder.book
    assert isinstance(book, MemoryAudit)
    async with AsyncEverforge(token=running.token, base_url=running.url) as owner:
        head = await owner.audit.head()
        await owner.audit.verify(kept=AuditHead(number=0, hash=GENESIS))
        assert (await owner.audit.verify(kept=head)).head == head
        with pytest.raises(ChainBroken):
            await owner.audit.verify(kept=AuditHead(number=2, hash="0" * 64))
        book.kept.pop()
        with pytest.raises(ChainBroken) as broken:
            await owner.audit.verify()
    assert broken.value.number == 3


@pytest.mark.parametrize("reads_before", range(8))
@pytest.mark.parametrize(("through", "step"), [(700, 700), (700, 160), (1200, 1200), (1200, 500)])
async def test_a_log_that_is_let_go_while_it_is_checked_is_sound_and_one_that_is_not_is_found_out(
    running: Running, reads_before: int, through: int, step: int
) -> None:
    for damaged in (None, through + 1) if through < 1200 else (None,):
        book = running.service.witness.recorder.book = LetGoMeanwhile(1200)
        if damaged is not None:
            book.kept[damaged - 1] = replace(book.kept[damaged - 1], outcome="changed")
        book.reads_before, book.through, book.step = reads_before, through, step
        async with AsyncEverforge(token=running.token, base_url=running.url) as owner:
            if damaged is None:
                assert (await owner.audit.verify()).head.number >= 1200
            else:
                with pytest.raises(ChainBroken) as broken:
                    await owner.audit.verify()
                assert broken.value.number == damaged


async def test_entries_that_somebody_takes_away_while_the_log_is_checked_are_missing(running: Running) -> None:
    book = running.service.witness.recorder.book = LetGoMeanwhile(1200)
    read = book.entries

    async def entries(query: AuditQuery) -> Sequence[AuditEntry]:
        del book.kept[:1]
        return await read(query)

    book.entries = entries  # pyright: ignore[reportAttributeAccessIssue]
    async with AsyncEverforge(token=running.token, base_url=running.url) as owner:
        with pytest.raises(ChainBroken):
            await owner.audit.verify()


async def test_what_is_written_while_an_empty_log_is_checked_is_no_harm(running: Running) -> None:
    book = running.service.witness.recorder.book = LetGoMeanwhile(0)
    read = book.head

    async def head() -> AuditHead:
        found = await read()
        await book.append([Seen(time=moment(1), action="machine.exec")])
        return found

    book.head = head  # pyright: ignore[reportAttributeAccessIssue]
    async with AsyncEverforge(token=running.token, base_url=running.url) as owner:
        assert (await owner.audit.verify()).count >= 0


async def test_what_an_account_manages_is_written_before_it_is_answered(tmp_path: Path) -> None:
    """So that no kill of the server loses it; an instruction's entry may be up to audit_flush_seconds behind."""
    store = await SqlStore.open(tmp_path / "store.db")
    async with (
        service(audit=AuditSettings(audit_flush_seconds=60.0), store=store) as running,
        httpx2.AsyncClient(base_url=running.url, headers=running.headers) as client,
    ):
        await client.post("/v1/machine/new", json={"name": "one"})
        assert [e.action for e in await store.audit.entries(AuditQuery())] == ["machine.create"]
        await client.post("/v1/machine/one/exec", json={"instruction": {"code": "1"}})
        assert len(await store.audit.entries(AuditQuery())) == 1
        await client.delete("/v1/machine/one")
        assert [e.action for e in await store.audit.entries(AuditQuery())] == ["machine.create", "machine.exec", "machine.delete"]
        await client.post("/v1/machine/new", json={"name": "two"})
        await client.post("/v1/machine/two/exec", json={"instruction": {"code": "1"}})
    assert (await store.audit.entries(AuditQuery()))[-1].action == "machine.exec"  # an orderly stop writes what waits
    await store.close()


def test_every_route_that_is_not_a_plain_read_has_an_action() -> None:
    reads = {(r.method, r.path) for door in DOORS for r in door.routes if r.action is None and r.method != "GET"}
    assert reads == {("POST", "/v1/machine/list"), ("POST", "/v1/machine/{name}/complete")}
    assert all(r.action is None for door in DOORS for r in door.routes if r.method == "GET")


def test_the_list_of_actions_in_the_document_is_that_of_the_routes() -> None:
    text = (Path(__file__).parents[3] / "docs" / "audit.md").read_text()
    words = re.findall(r"`([a-z.|]+)`", re.search(r"^Actions: .*?(?=\s`--action)", text, re.DOTALL | re.MULTILINE)[0])  # type: ignore[index]
    listed = [f"{noun}.{verb}" if verb else noun for word in words for noun, _, verbs in [word.partition(".")] for verb in verbs.split("|")]
    actions = {r.action for door in DOORS for r in door.routes if r.action is not None} | {*ACTIONS.values(), CREATES}
    assert sorted(listed) == sorted({*actions, "read", PRUNED, DROPPED, UNREADABLE})


def test_every_answer_that_shows_a_token_or_a_secret_is_kept_by_nobody_on_the_way() -> None:
    shown = {
        r.path for door in DOORS for r in door.routes if r.answer is not None and r.method == "POST"
        and (r.answer is LogInLink or any(f.name in ("token", "secret", "invitation") for f in fields(r.answer)))
    }  # fmt: skip
    assert shown == {r.path for door in DOORS for r in door.routes if r.confidential}
    assert len(shown) == 7


async def test_what_is_shown_this_once_is_not_to_be_stored(running: Running, client: httpx2.AsyncClient) -> None:
    link = await client.post("/v1/links")
    answers = [
        link,
        await client.post(link.json()["url"]),
        await client.post("/v1/tokens"),
        await client.post("/v1/accounts", json={"account_name": "ada"}),
        await client.post("/v1/invitations"),
        await client.post("/v1/webhooks", json={"url": "https://example.org/"}),
        await client.post("/internal/signup", json={"email": "bob@example.org", "account_name": "bob"}),
    ]
    assert [(answer.status_code, answer.headers.get("cache-control")) for answer in answers] == [(200, "no-store")] * 7
    assert "cache-control" not in (await client.get("/v1/tokens")).headers


async def test_numbers_that_are_none_are_refused_and_do_not_stop_the_log(running: Running, client: httpx2.AsyncClient) -> None:
    await running.account("ada")
    for number in ("NaN", "1e999"):
        answer = await client.patch("/v1/accounts/ada/quota", content=f'{{"requests_per_second": {number}}}')
        assert answer.status_code == 400
    await client.patch("/v1/accounts/ada/quota", json={"machines": 3})
    found = await entries(running)
    assert [(e["action"], e["outcome"]) for e in found] == [
        ("account.quota", "InvalidInput"),
        ("account.quota", "InvalidInput"),
        ("account.quota", "ok"),
    ]
    assert [e["detail"] for e in found] == [{"account": "ada"}, {"account": "ada"}, {"account": "ada", "machines": 3}]


async def test_no_account_pushes_out_what_others_did_nor_what_it_did_itself() -> None:
    store = MemoryStore()
    heard: list[Signal] = []
    hosts = [f"{n}.{'a' * 60}.{'b' * 25}.example" for n in range(18)]
    async with (
        service(audit=replace(QUICK, audit_bytes_max=1024 * 1024, audit_age_days=0.0), store=store) as running,
        httpx2.AsyncClient(base_url=running.url, headers={"Authorization": f"Bearer {await running.account('ada')}"}) as ada,
    ):
        running.service.signals.listen(heard.append)
        await ada.post("/v1/machine/new", json={"name": "of-the-owner"}, headers=running.headers)
        await ada.post("/v1/machine/new", json={"name": "hers"})
        for n in range(600):
            assert (await ada.post("/v1/machine/hers/egress", json={"deny" if n % 2 else "allow": hosts})).status_code == 200
        for _ in range(600):
            await ada.post(f"/v1/machine/none-{'x' * 180}/interrupt")
        await ada.delete("/v1/machine/hers")
        await ada.post("/v1/machine/new", json={"name": "of-the-owner-2"}, headers=running.headers)
    found = [plain(entry) for entry in store.audit.kept]
    assert [e["machine"] for e in found if e["action"].startswith("machine.") and e["outcome"] == OK] == [
        "of-the-owner",
        "hers",
        "hers",
        "of-the-owner-2",
    ]
    assert sum(map(size_bytes, store.audit.kept)) < 100_000
    changes = [e for e in found if e["action"] == "egress.change"]
    assert 5 < len(changes) < 100
    assert sum(e["detail"].get("counted", 1) for e in changes) == 600
    (counted,) = [e for e in changes if "counted" in e["detail"]]
    assert (counted["account_name"], counted["machine"], counted["address"], counted["outcome"]) == ("ada", "hers", "127.0.0.1", OK)
    assert counted["detail"]["since"] <= counted["time"]
    assert {(signal.account, signal.machine) for signal in heard if signal.detail.get("limit") == "audit_account_days"} == {
        (changes[0]["account"], None)
    }
    chain = Chain()
    for entry in found:
        chain.add(entry)
    chain.end(await store.audit.head())


async def test_what_would_be_no_entry_takes_no_room_from_refusals_that_are() -> None:
    async with (
        service(audit=replace(QUICK, audit_refusals_per_minute=2, audit_account_refusals_per_minute=2)) as running,
        httpx2.AsyncClient(base_url=running.url) as client,
    ):
        ada = {"Authorization": f"Bearer {await running.account('ada')}"}
        await client.patch("/v1/accounts/ada/quota", json={"requests_per_second": 1}, headers=running.headers)
        while (await client.get("/v1/whoami", headers=ada)).status_code != 429:
            pass
        for _ in range(5):
            assert (await client.get("/v1/whoami", headers=ada)).status_code == 429
        reader = {"Authorization": f"Bearer {await running.scoped('read')}"}
        await client.get("/v1/machine/none", headers=running.headers)
        await client.delete("/v1/machine/x", headers={"Authorization": "Bearer nonsense"})
        await client.post("/v1/accounts", json={"account_name": "zed"}, headers=reader)
        found = (await entries(running))[1:]
    assert [(e["action"], e["outcome"], e["detail"]) for e in found] == [
        ("machine.delete", "Unauthenticated", {}),
        ("account.create", "Forbidden", {}),
    ]


async def test_one_account_does_not_fill_the_log_with_refusals_nor_hide_those_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("everforge.server.witness.Refusals", lambda per_minute: Refusals(per_minute, lambda: now))
    async with (
        service(audit=replace(QUICK, audit_account_refusals_per_minute=3)) as running,
        httpx2.AsyncClient(base_url=running.url, headers={"Authorization": f"Bearer {await running.account('ada')}"}) as ada,
    ):
        for _ in range(10):
            await ada.post("/v1/machine/none-such/interrupt")
        await ada.post("/v1/accounts", json={"account_name": "zed"})  # another kind
        await ada.delete("/v1/machine/none-such", headers=running.headers)  # another account
        now = 61.0
        await ada.post("/v1/machine/none-such/interrupt")
        found = await entries(running)
    assert [(e["action"], e["outcome"], e["account_name"], e["detail"]) for e in found] == [
        *[("machine.interrupt", "MachineNotFound", "ada", {})] * 3,
        ("account.create", "Forbidden", "ada", {}),
        ("machine.delete", "MachineNotFound", "owner", {}),
        ("machine.interrupt", "MachineNotFound", "ada", {"left_out": 7}),
    ]


async def test_a_flood_of_bad_tokens_leaves_a_bounded_number_of_entries() -> None:
    async with service(QUIET, audit=replace(QUICK, audit_refusals_per_minute=5)) as running, httpx2.AsyncClient(base_url=running.url) as stranger:
        for _ in range(30):
            assert (await stranger.get("/v1/whoami")).status_code == 401
        assert len(await entries(running)) == 5
