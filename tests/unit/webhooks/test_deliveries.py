"""From an event to whoever is told of it: signed, tried again, kept over a restart, given up at last."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from everforge.machines.requests import NewMachine
from everforge.server.lookout import Bursts
from everforge.store.memory import MemoryStore
from everforge.store.sql.store import SqlStore
from everforge.webhooks import postmaster, slots
from everforge.webhooks.service import Event, Webhooks
from everforge.webhooks.settings import WebhookSettings
from everforge.wire.errors import DiskFull, InvalidInput, TooMany, WebhookFailed
from everforge.wire.ids import OWNER, AccountId
from everforge.wire.webhooks import new_secret
from kit.doorway import Program, porter, request
from kit.hooks import Hook, hook
from kit.house import QUICK as LIVELY
from kit.house import House
from kit.service import QUIET, Running, service, serving

QUICK = WebhookSettings(webhook_pause_seconds=0.01, webhook_pause_seconds_max=0.02, webhook_seconds=5.0, webhook_tries=3)
ADA = AccountId("ada")
DAY = 24 * 3600.0


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postmaster, "LOOK_SECONDS", 0.01)


@pytest.fixture
async def receiver() -> AsyncIterator[Hook]:
    async with hook() as receiver:
        yield receiver


def webhooks(store: Any, receiver: Hook, **settings: Any) -> Webhooks:
    return Webhooks(store.webhooks, store.accounts, replace(QUICK, webhook_hosts_open=(receiver.place,), **settings))


def event(kind: str = "machine.broken", **detail: Any) -> Event:
    return Event(kind, (ADA,), ADA, "one", 1.5, detail)


def verification() -> dict[str, Any]:
    """The example that the document shows."""
    text = (Path(__file__).parents[3] / "docs/webhooks.md").read_text()
    names: dict[str, Any] = {}
    exec(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[0], names)
    return names


async def test_an_event_arrives_signed_as_the_document_checks_it(receiver: Hook) -> None:
    hooks = webhooks(MemoryStore(), receiver)
    async with hooks.running():
        made = await hooks.add(ADA, receiver.url, ["machine.broken"])
        hooks.tell(event(error="lost"))
        hooks.tell(event("machine.slept"))  # nobody asked for it
        letter = await receiver.letter()
    assert letter.target == "/hook?a=b"
    told = letter.json
    assert (told["type"], told["machine"], told["detail"], told["time"]) == ("machine.broken", "one", {"error": "lost"}, "1970-01-01T00:00:01.500Z")
    assert told["id"] == letter.headers["webhook-id"]
    check = verification()["is_genuine"]
    assert check(made.secret, letter.headers, letter.body)
    assert not check(made.secret, letter.headers, letter.body + b" ")
    assert not check(new_secret(), letter.headers, letter.body)
    assert not check(made.secret, {**letter.headers, "webhook-id": "another"}, letter.body)
    assert not check(made.secret, {**letter.headers, "webhook-timestamp": str(int(letter.headers["webhook-timestamp"]) - 3600)}, letter.body)
    assert receiver.letters.empty()


async def test_what_fails_is_tried_again_under_the_same_id(receiver: Hook) -> None:
    receiver.answers = ["500 No", "503 Not yet", "200 OK"]
    store = MemoryStore()
    hooks = webhooks(store, receiver)
    outcomes: list[str] = []
    async with hooks.running():
        hooks.postmaster.told = outcomes.append
        await hooks.add(ADA, receiver.url)
        hooks.tell(event())
        letters = [await receiver.letter() for _ in range(3)]
        await _until(lambda: outcomes[-1:] == ["delivered"])
    assert len({letter.headers["webhook-id"] for letter in letters}) == 1
    assert len({letter.body for letter in letters}) == 1
    assert outcomes == ["failed", "failed", "delivered"]
    assert await store.webhooks.waiting() == 0


async def test_what_is_tried_often_enough_is_given_up_and_can_be_tried_anew(receiver: Hook) -> None:
    receiver.answers = ["500 No"]
    store = MemoryStore()
    hooks = webhooks(store, receiver)
    async with hooks.running():
        await hooks.add(ADA, receiver.url)
        hooks.tell(event())
        ids = {(await receiver.letter()).headers["webhook-id"] for _ in range(3)}
        while not (dead := await hooks.dead(ADA)):
            await asyncio.sleep(0.005)
        assert [(one.id, one.attempts, one.error) for one in dead] == [(*ids, 3, "it answered 500")]
        assert await hooks.dead(OWNER) == []
        receiver.answers = ["200 OK"]
        assert await hooks.retry(ADA, dead[0].id) == 1
        assert (await receiver.letter()).headers["webhook-id"] in ids
        while await store.webhooks.waiting():
            await asyncio.sleep(0.005)
        assert await hooks.dead(ADA) == []


async def test_what_waits_survives_the_server(receiver: Hook, tmp_path: Path) -> None:
    receiver.answers = ["500 No"]
    store = await SqlStore.open(tmp_path / "store.db")
    hooks = webhooks(store, receiver, webhook_tries=10**6)
    async with hooks.running():
        await hooks.add(ADA, receiver.url)
        hooks.tell(event(n=1))
        first = await receiver.letter()
    await store.close()
    store = await SqlStore.open(tmp_path / "store.db")
    while not receiver.letters.empty():
        receiver.letters.get_nowait()
    receiver.answers = ["200 OK"]
    async with webhooks(store, receiver).running():
        assert (await receiver.letter()).body == first.body
        while await store.webhooks.waiting():
            await asyncio.sleep(0.005)
    await store.close()


@pytest.fixture(params=["memory", "sql"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    if request.param == "memory":
        yield MemoryStore()
    else:
        store = await SqlStore.open(tmp_path / "store.db")
        yield store
        await store.close()


async def test_a_clock_that_is_set_back_puts_no_try_off(receiver: Hook, store: Any) -> None:
    receiver.answers = ["500 No", "200 OK"]
    off, outcomes = 0.0, list[str]()
    settings = replace(QUICK, webhook_hosts_open=(receiver.place,), webhook_pause_seconds=0.3, webhook_pause_seconds_max=0.3)
    hooks = Webhooks(store.webhooks, store.accounts, settings, clock=lambda: time.time() + off)
    async with hooks.running():
        hooks.postmaster.told = outcomes.append
        await hooks.add(ADA, receiver.url)
        hooks.tell(event())
        first = await receiver.letter()
        await _until(lambda: outcomes == ["failed"])
        off = -DAY
        again = await receiver.letter()
    assert again.body == first.body
    assert abs(int(again.headers["webhook-timestamp"]) - (time.time() - DAY)) < 60, "who checks the signature has the clock that was set"


async def test_a_clock_that_is_set_forward_gives_nothing_up_early(receiver: Hook, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    receiver.answers = ["500 No"]
    off, looks, due = 0.0, 0, store.webhooks.due

    async def counted(*given: Any) -> Any:
        nonlocal looks
        looks += 1
        return await due(*given)

    monkeypatch.setattr(store.webhooks, "due", counted)
    settings = replace(QUICK, webhook_hosts_open=(receiver.place,), webhook_pause_seconds=600.0, webhook_pause_seconds_max=600.0)
    hooks = Webhooks(store.webhooks, store.accounts, settings, clock=lambda: time.time() + off)
    async with hooks.running():
        await hooks.add(ADA, receiver.url)
        hooks.tell(event())
        await receiver.letter()
        for _ in range(4):
            off += DAY
            seen = looks
            while looks < seen + 3:
                await asyncio.sleep(0.005)
        assert receiver.letters.empty()
        assert await hooks.dead(ADA) == []
        assert await store.webhooks.waiting() == 1


@pytest.mark.parametrize("answer", ["500 No", None], ids=["after a try", "before the first"])
async def test_what_a_server_put_off_by_a_clock_that_was_ahead_the_next_tries_in_its_time(receiver: Hook, store: Any, answer: str | None) -> None:
    receiver.answers, ahead = [answer or "500 No"], time.time() + DAY
    hooks = Webhooks(store.webhooks, store.accounts, replace(QUICK, webhook_hosts_open=(receiver.place,), webhook_tries=9), steady=lambda: ahead)
    async with hooks.running():
        await hooks.add(ADA, receiver.url)
        hooks.tell(event())  # noted, and as this clock stands still, never due
        while not await store.webhooks.waiting():
            await asyncio.sleep(0.005)
        if answer:
            ahead += 1.0
            await receiver.letter()
            while (await store.webhooks.due(ahead + 60.0, 1))[0].attempts == 0:
                await asyncio.sleep(0.005)
    receiver.answers = ["200 OK"]
    async with webhooks(store, receiver).running():
        await receiver.letter()
        while await store.webhooks.waiting():
            await asyncio.sleep(0.005)


async def test_a_webhook_that_does_not_answer_keeps_nobody_else_waiting(receiver: Hook) -> None:
    async with hook() as deaf:
        deaf.silent = True
        store = MemoryStore()
        hooks = Webhooks(store.webhooks, store.accounts, replace(QUICK, webhook_hosts_open=(receiver.place, deaf.place), webhook_seconds=60.0))
        async with hooks.running():
            await hooks.add(ADA, deaf.url, ["machine.slept"])
            await hooks.add(ADA, receiver.url, ["machine.broken"])
            for _ in range(100):
                hooks.tell(event("machine.slept"))
            hooks.tell(event("machine.broken"))
            assert (await receiver.letter()).json["type"] == "machine.broken"
            assert deaf.letters.qsize() <= slots.OF_ONE_MAX


async def test_an_account_whose_webhooks_do_not_answer_keeps_no_other_waiting(receiver: Hook) -> None:
    async with hook() as deaf:
        deaf.silent = True
        store = MemoryStore()
        hooks = Webhooks(store.webhooks, store.accounts, replace(QUICK, webhook_hosts_open=(receiver.place, deaf.place), webhook_seconds=60.0))
        async with hooks.running():
            for _ in range(20):
                await hooks.add(ADA, deaf.url)
            await hooks.add(OWNER, receiver.url)
            for _ in range(10):
                hooks.tell(event())
            for _ in range(slots.OF_ACCOUNT_MAX):
                await deaf.letter()  # as many as it may have are under way
            hooks.tell(Event("limit.hit", (ADA, OWNER), ADA, None, 1.5))
            assert (await receiver.letter()).json["type"] == "limit.hit"
            assert deaf.letters.empty()


async def silent_accounts(hooks: Webhooks, deaf: Hook, count: int, each: int) -> tuple[AccountId, ...]:
    """So many accounts, with webhooks that never answer."""
    accounts = tuple(AccountId(f"a{n}") for n in range(count))
    for account in accounts:
        for _ in range(each):
            await hooks.add(account, deaf.url)
    return accounts


async def test_any_number_of_accounts_whose_webhooks_do_not_answer_keep_no_other_waiting(receiver: Hook, store: Any) -> None:
    async with hook() as deaf:
        deaf.silent = True
        hooks = Webhooks(store.webhooks, store.accounts, replace(QUICK, webhook_hosts_open=(receiver.place, deaf.place), webhook_seconds=60.0))
        async with hooks.running():
            accounts = await silent_accounts(hooks, deaf, 40, 2)
            await hooks.add(OWNER, receiver.url)
            for _ in range(5):
                hooks.tell(Event("machine.broken", accounts, None, "one", 1.5))
            heard: set[str] = set()
            while len(heard) < 40:  # until each of them has what it may have under way
                heard.add((await deaf.letter()).headers["webhook-id"])
            for _ in range(3):
                hooks.tell(Event("limit.hit", (OWNER,), OWNER, None, 1.5))
                assert (await receiver.letter()).json["type"] == "limit.hit"


async def test_names_of_other_accounts_that_no_name_server_answers_for_keep_nobody_waiting(receiver: Hook) -> None:
    asked = 0

    async def resolve(host: str, port: int) -> list[str]:
        nonlocal asked
        if host == "hook.example":
            return ["127.0.0.1"]
        asked += 1
        return await asyncio.get_running_loop().create_future()

    port, store = receiver.place.partition(":")[2], MemoryStore()
    settings = replace(QUICK, webhook_hosts_open=(f"hook.example:{port}",), webhook_seconds=60.0)
    hooks = Webhooks(store.webhooks, store.accounts, settings, resolve=resolve)
    async with hooks.running():
        accounts = tuple(AccountId(f"a{n}") for n in range(2 * slots.COMMON_MAX))
        for account in accounts:
            await hooks.add(account, "https://never.example/hook")
        await hooks.add(OWNER, f"http://hook.example:{port}/hook")
        hooks.tell(Event("machine.broken", accounts, None, "one", 1.5))
        async with asyncio.timeout(10):
            while asked < len(accounts):
                await asyncio.sleep(0.001)
        hooks.tell(Event("limit.hit", (OWNER,), OWNER, None, 1.5))
        assert (await receiver.letter()).json["type"] == "limit.hit"


async def test_where_there_are_more_of_them_than_places_they_take_turns_by_account(
    receiver: Hook, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "AT_ONCE_MAX", 4)
    monkeypatch.setattr(slots, "COMMON_MAX", 2, raising=False)
    async with hook() as deaf:
        deaf.silent = True
        hooks = Webhooks(store.webhooks, store.accounts, replace(QUICK, webhook_hosts_open=(receiver.place, deaf.place), webhook_seconds=0.05))
        async with hooks.running():
            accounts = await silent_accounts(hooks, deaf, 6, 2)
            await hooks.add(OWNER, receiver.url)
            for _ in range(20):
                hooks.tell(Event("machine.broken", accounts, None, "one", 1.5))
            await deaf.letter()
            hooks.tell(Event("limit.hit", (OWNER,), OWNER, None, 1.5))
            assert (await receiver.letter()).json["type"] == "limit.hit"
            assert deaf.letters.qsize() <= 6 + 4 + 1  # a turn of each, what was under way, and what began meanwhile; of 240


async def test_an_outcome_that_cannot_be_noted_is_noted_later_and_nothing_is_sent_twice_for_it(
    receiver: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postmaster, "NOTE_SECONDS", 0.01)
    store = MemoryStore()
    full, tries, note = True, 0, store.webhooks.arrived

    async def arrived(id: str) -> None:
        nonlocal tries
        tries += 1
        if full:
            raise DiskFull("the disk is full")
        await note(id)

    monkeypatch.setattr(store.webhooks, "arrived", arrived)
    hooks = webhooks(store, receiver)
    async with hooks.running():
        await hooks.add(ADA, receiver.url)
        hooks.tell(event())
        await _until(lambda: tries >= 5)
        full = False
        while await store.webhooks.waiting():
            await asyncio.sleep(0.005)
    assert receiver.letters.qsize() == 1


async def test_tries_on_demand_take_the_places_that_there_are_and_no_more(receiver: Hook) -> None:
    receiver.silent = True
    store = MemoryStore()
    hooks = webhooks(store, receiver, webhook_seconds=60.0)
    async with hooks.running():
        made = [await hooks.add(ADA, receiver.url, ["machine.slept"]) for _ in range(3)]
        tries = [asyncio.ensure_future(hooks.test(ADA, one.id)) for one in made for _ in range(slots.OF_ONE_MAX)]
        refused, under_way = await asyncio.wait(tries, timeout=None, return_when=asyncio.FIRST_COMPLETED)
        assert (len(refused), len(under_way)) == (2, slots.OF_ACCOUNT_MAX)
        with pytest.raises(TooMany) as told:
            await hooks.test(ADA, made[0].id)
        assert told.value.details["retry_after_seconds"] == 60
        for one in under_way:
            one.cancel()
        await asyncio.wait(under_way)
        receiver.silent = False
        await hooks.test(ADA, made[0].id)
    for one in refused:
        assert isinstance(one.exception(), TooMany)


async def test_only_so_many_events_wait_for_one_webhook(receiver: Hook) -> None:
    receiver.answers = ["500 No"]
    store = MemoryStore()
    hooks = webhooks(store, receiver, webhook_queue_max=5, webhook_pause_seconds=60.0, webhook_pause_seconds_max=60.0)
    async with hooks.running():
        await hooks.add(ADA, receiver.url)
        for _ in range(20):
            hooks.tell(event())
        await _until(lambda: hooks.left_out == 15)
        assert await store.webhooks.waiting() == 5


@pytest.mark.parametrize(
    "wrong",
    [
        {"events": []},
        {"events": ["nonesuch"]},
        {"events": "machine.slept"},
        {"secret": "short"},
        {"secret": "whsec_%%%"},
        {"url": "https://10.0.0.1/"},
    ],
)
async def test_a_webhook_that_cannot_be_is_refused(receiver: Hook, wrong: dict[str, Any]) -> None:
    hooks = webhooks(MemoryStore(), receiver)
    async with hooks.running():
        with pytest.raises(InvalidInput):
            await hooks.add(ADA, **{"url": receiver.url, **wrong})


async def test_what_the_owner_closed_again_is_not_gone_to(receiver: Hook) -> None:
    store = MemoryStore()
    async with (hooks := webhooks(store, receiver)).running():
        made = await hooks.add(ADA, receiver.url)
    hooks = Webhooks(store.webhooks, store.accounts, QUICK)
    async with hooks.running():
        with pytest.raises(WebhookFailed):
            await hooks.test(ADA, made.id)
    assert receiver.letters.empty()


async def test_pauses_grow_fourfold_up_to_a_maximum_and_no_two_are_quite_alike(receiver: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    receiver.answers = ["500 No"]
    store, pauses, now = MemoryStore(), list[float](), 1_000.0
    note = store.webhooks.failed

    async def failed(id: str, *, attempts: int, next_at: float, error: str) -> None:
        nonlocal now
        pauses.append(next_at - now)
        now = next_at + 1.0
        await note(id, attempts=attempts, next_at=next_at, error=error)

    def clock() -> float:
        nonlocal now
        now += 0.001
        return now

    monkeypatch.setattr(store.webhooks, "failed", failed)
    settings = WebhookSettings(webhook_hosts_open=(receiver.place,), webhook_pause_seconds=5.0, webhook_pause_seconds_max=1_000.0)
    hooks = Webhooks(store.webhooks, store.accounts, settings, steady=clock)
    async with hooks.running():
        await hooks.add(ADA, receiver.url)
        hooks.tell(event())
        while not await hooks.dead(ADA):
            await asyncio.sleep(0.005)
    usual = [5.0, 20.0, 80.0, 320.0, 1_000.0, 1_000.0, 1_000.0]
    assert len(pauses) == len(usual)
    assert all(0.7 * wanted <= pause <= 1.3 * wanted for pause, wanted in zip(pauses, usual, strict=True))
    assert len(set(pauses[-3:])) == 3


async def test_events_that_nobody_has_time_to_store_are_counted_and_let_go(receiver: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everforge.webhooks.service.TOLD_MAX", 10)
    store = MemoryStore()
    hooks = webhooks(store, receiver)
    async with hooks.running():
        await hooks.add(ADA, receiver.url)
        for _ in range(15):
            hooks.tell(event())  # without a pause in which they could be stored
        assert hooks.left_out == 5


async def test_what_is_told_last_is_stored_before_the_server_ends(receiver: Hook) -> None:
    store = MemoryStore()
    hooks = webhooks(store, receiver)
    async with hooks.running():
        await hooks.add(ADA, receiver.url)
        hooks.tell(event(n=1))
    assert await store.webhooks.waiting() == 1
    async with webhooks(store, receiver).running():
        assert (await receiver.letter()).json["detail"] == {"n": 1}


async def test_webhooks_hear_of_their_own_accounts_events_and_of_none_once_they_are_gone(receiver: Hook) -> None:
    store = MemoryStore()
    hooks = webhooks(store, receiver)
    async with hooks.running():
        first, second = [await hooks.add(ADA, receiver.url) for _ in range(2)]
        await hooks.add(AccountId("bob"), receiver.url)
        await hooks.remove(ADA, first.id)
        assert [one.id for one in hooks.of(ADA)] == [second.id]
        await hooks.remove_all(ADA)
        hooks.tell(event("machine.slept"))
        hooks.tell(Event("machine.woken", (AccountId("bob"),), None, None, 1.5))
        assert (await receiver.letter()).json["type"] == "machine.woken"
    assert (hooks.of(ADA), receiver.letters.empty()) == ([], True)


def test_a_burst_is_told_once_in_its_time() -> None:
    now = 0.0
    bursts = Bursts(60.0, lambda: now)
    assert [bursts.count(("a",), 3) for _ in range(6)] == [False, False, True, False, False, False]
    assert bursts.count(("b",), 1)
    now = 61.0
    assert [bursts.count(("a",), 3) for _ in range(3)] == [False, False, True]


# --- through the server's doors --------------------------------------------------------------------------------------------------------


@pytest.fixture
async def running(receiver: Hook) -> AsyncIterator[Running]:
    async with service(webhooks=replace(QUICK, webhook_hosts_open=(receiver.place,), auth_failures_burst=3)) as running:
        yield running


@pytest.fixture
async def client(running: Running) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=running.url, headers=running.headers) as client:
        yield client


async def test_the_life_of_a_machine_is_told(client: httpx2.AsyncClient, receiver: Hook) -> None:
    made = (await client.post("/v1/webhooks", json={"url": receiver.url})).json()
    assert made["secret"].startswith("whsec_")
    listed = (await client.get("/v1/webhooks")).json()["webhooks"]
    assert (listed[0]["id"], "secret" in listed[0], "instruction.ended" in listed[0]["events"]) == (made["id"], False, False)
    await client.post("/v1/machine/new", json={"name": "one"})
    await client.post("/v1/machine/one/exec", json={"instruction": {"code": "1"}})
    await client.get("/v1/machine/one/exec/0/result")
    await client.post("/v1/machine/one/hibernate")
    await client.post("/v1/machine/one/wake")
    await client.delete("/v1/machine/one")
    told = {(letter.json["type"], letter.json["machine"], letter.json["account"]) for letter in [await receiver.letter() for _ in range(4)]}
    assert told == {(f"machine.{what}", "one", "owner") for what in ("created", "slept", "woken", "deleted")}
    metrics = (await client.get("/metrics")).text
    for line in ('everforge_machine_events_total{event="machine.slept"} 1.0', 'everforge_webhook_deliveries_total{outcome="delivered"}'):
        assert line in metrics


@pytest.mark.parametrize("events", [[""], ["limit.hit", ""], []])
async def test_an_event_without_a_name_is_refused_and_nothing_is_made(client: httpx2.AsyncClient, receiver: Hook, events: list[str]) -> None:
    refused = await client.post("/v1/webhooks", json={"url": receiver.url, "events": events})
    assert (refused.status_code, refused.json()["code"]) == (400, "InvalidInput")
    assert "one at least" in refused.json()["message"]
    assert (await client.get("/v1/webhooks")).json()["webhooks"] == []


async def test_the_dead_that_there_is_no_room_for_are_counted_where_they_are_listed(receiver: Hook) -> None:
    receiver.answers = ["500 No"]
    settings = replace(QUICK, webhook_hosts_open=(receiver.place,), webhook_tries=1, webhook_dead_max=2)
    async with service(webhooks=settings) as running, httpx2.AsyncClient(base_url=running.url, headers=running.headers) as client:
        await client.post("/v1/webhooks", json={"url": receiver.url, "events": ["machine.created"]})
        for n in range(5):
            await client.post("/v1/machine/new", json={"name": f"m{n}"})
        async with asyncio.timeout(10):
            while (listed := (await client.get("/v1/webhooks/dead")).json())["let_go"] < 3:
                await asyncio.sleep(0.01)
        assert (len(listed["deliveries"]), listed["let_go"]) == (2, 3)
        assert 'everforge_webhook_deliveries_total{outcome="let_go"} 3.0' in (await client.get("/metrics")).text


async def test_ends_of_instructions_are_told_to_those_who_ask_for_them(client: httpx2.AsyncClient, receiver: Hook) -> None:
    await client.post("/v1/webhooks", json={"url": receiver.url, "events": ["instruction.ended", "limit.hit"]})
    await client.post("/v1/machine/new", json={"name": "one"})
    await client.post("/v1/machine/one/exec", json={"instruction": {"code": "hang()", "timeout_seconds": 0.05}})
    ended = [await receiver.letter() for _ in range(2)]
    by_type = {letter.json["type"]: letter.json["detail"] for letter in ended}
    assert by_type["instruction.ended"]["instruction"] == 0
    assert by_type["limit.hit"] == {"limit": "timeout_seconds"}


async def test_bursts_of_bad_tokens_are_told_to_the_owner_once(running: Running, client: httpx2.AsyncClient, receiver: Hook) -> None:
    await client.post("/v1/webhooks", json={"url": receiver.url, "events": ["auth.failures"]})
    async with httpx2.AsyncClient(base_url=running.url) as stranger:
        for _ in range(10):
            await stranger.get("/v1/whoami")
    told = (await receiver.letter()).json
    assert (told["type"], told["detail"]) == ("auth.failures", {"address": "127.0.0.1", "failures": 3, "seconds": 60.0})
    assert 'everforge_auth_failures_total{reason="Unauthenticated"} 10.0' in (await client.get("/metrics")).text
    assert receiver.letters.empty()


async def test_blocked_egress_and_limits_are_told_to_the_account_and_to_the_owner(
    running: Running, client: httpx2.AsyncClient, receiver: Hook
) -> None:
    token = await running.account("ada")
    account = (await running.accounts.identify(token)).account
    for headers in (running.headers, {"Authorization": f"Bearer {token}"}):
        assert (await client.post("/v1/webhooks", json={"url": receiver.url}, headers=headers)).status_code == 200
    for _ in range(50):
        running.service.signals.tell("egress.attempt", account=account, machine="hers", verdict="refused", host="10.0.0.1")
    for _ in range(5):
        running.service.signals.tell("limit.hit", account=account, machine="hers", limit="memory_mb")
    letters = [(await receiver.letter()).json for _ in range(4)]
    assert (
        sorted((told["type"], told["account"], told["machine"]) for told in letters)
        == [("egress.blocked_burst", "ada", "hers")] * 2 + [("limit.hit", "ada", "hers")] * 2
    )
    metrics = (await client.get("/metrics")).text
    assert 'everforge_egress_attempts_total{verdict="refused"} 50.0' in metrics
    assert 'everforge_limit_hits_total{limit="memory_mb"} 5.0' in metrics
    assert receiver.letters.empty()


async def test_a_machine_that_is_kept_from_leaving_again_and_again_is_told_of(running: Running, client: httpx2.AsyncClient, receiver: Hook) -> None:
    """From a program in it, through the door that its server opens for it."""
    await client.post("/v1/webhooks", json={"url": receiver.url, "events": ["egress.blocked_burst"]})
    await client.post("/v1/machine/new", json={"name": "one", "egress": "public"})
    record = (await running.machines.get("one")).record
    inside, outside = socket.socketpair()
    door = running.service.egress.open(outside, lambda: record)
    async with porter(door, inside) as port:
        for _ in range(running.service.webhooks.settings.egress_blocked_burst):
            assert receiver.letters.empty()
            async with Program(*await asyncio.open_connection("127.0.0.1", port)) as program:
                assert b"403" in (await program.ask(request("http://169.254.169.254/latest/meta-data", host="169.254.169.254")))[:20]
        told = (await receiver.letter()).json
    await door.close()
    assert (told["type"], told["machine"], told["detail"]["host"], told["detail"]["attempts"]) == (
        "egress.blocked_burst",
        "one",
        "169.254.169.254",
        20,
    )


async def test_refusals_of_one_token_are_told_to_its_account_and_the_owner(running: Running, client: httpx2.AsyncClient, receiver: Hook) -> None:
    token = await running.account("ada")
    ada = await running.accounts.identify(token)
    reader = await running.accounts.new_token(ada, scopes=["read"])
    for headers in (running.headers, {"Authorization": f"Bearer {token}"}):
        await client.post("/v1/webhooks", json={"url": receiver.url, "events": ["auth.failures"]}, headers=headers)
    for address in range(3):  # so many tries from one address make a burst of their own
        signal = {"account": ada.account, "reason": "Forbidden", "token": reader.record.id}
        running.service.signals.tell("auth.failure", **signal, address=f"192.0.2.{address}")
    letters = [(await receiver.letter()).json for _ in range(2)]
    assert [(told["account"], told["detail"]) for told in letters] == [("ada", {"token": reader.record.id, "failures": 3, "seconds": 60.0})] * 2


async def test_refusals_of_a_good_token_for_what_it_may_not_do_are_told_by_token_too(
    running: Running, client: httpx2.AsyncClient, receiver: Hook
) -> None:
    await client.post("/v1/webhooks", json={"url": receiver.url, "events": ["auth.failures"]})
    weak = await running.scoped("read")
    for _ in range(10):
        assert (await client.post("/v1/machine/new", headers={"Authorization": f"Bearer {weak}"}, json={})).status_code == 403
    letters = [(await receiver.letter()).json["detail"] for _ in range(2)]
    assert {"token": weak.partition(".")[0], "failures": 3, "seconds": 60.0} in letters


async def test_what_is_too_large_is_a_limit_that_was_met(receiver: Hook) -> None:
    small = replace(QUIET, body_bytes_max=2_000)
    hooks = replace(QUICK, webhook_hosts_open=(receiver.place,))
    async with service(small, webhooks=hooks) as running, httpx2.AsyncClient(base_url=running.url, headers=running.headers) as client:
        await client.post("/v1/webhooks", json={"url": receiver.url, "events": ["limit.hit"]})
        await client.post("/v1/machine/new", json={"name": "one"})
        large = await client.post("/v1/machine/one/exec", json={"instruction": {"code": "x" * 5_000}})
        assert large.status_code == 413
        told = (await receiver.letter()).json
        assert (told["type"], told["machine"], told["detail"]) == ("limit.hit", "one", {"limit": "TooLarge"})


async def test_a_machine_that_goes_to_sleep_as_the_server_stops_is_told_of_by_the_next(receiver: Hook, tmp_path: Path) -> None:
    receiver.answers = ["500 No"]
    settings = WebhookSettings(webhook_hosts_open=(receiver.place,))
    store = await SqlStore.open(tmp_path / "store.db")
    house = House(LIVELY, store)
    await house.start()
    async with serving(house.machines, webhooks=settings) as running:
        await running.service.webhooks.add(OWNER, receiver.url, ["machine.slept"])
        await running.machines.create(NewMachine(name="one"))
        await running.machines.wake("one")
    await house.machines.forge.stop()  # as a server does when its doors are closed
    store = await SqlStore.open(tmp_path / "store.db")
    receiver.answers = ["204 No Content"]
    async with Webhooks(store.webhooks, store.accounts, settings).running():
        assert (await receiver.letter()).json["machine"] == "one"
    await store.close()
    await house.close()


async def test_more_than_one_write_takes_is_stored_before_the_server_ends(receiver: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everforge.webhooks.service.TOGETHER_MAX", 2)
    store = MemoryStore()
    hooks = webhooks(store, receiver)
    async with hooks.running():
        await hooks.add(ADA, receiver.url)
        for _ in range(9):
            hooks.tell(event())
    assert await store.webhooks.waiting() == 9


async def test_webhooks_are_their_accounts_alone_and_go_with_it(running: Running, client: httpx2.AsyncClient, receiver: Hook) -> None:
    token = await running.account("ada")
    async with httpx2.AsyncClient(base_url=running.url, headers={"Authorization": f"Bearer {token}"}) as ada:
        id = (await ada.post("/v1/webhooks", json={"url": receiver.url})).json()["id"]
        assert (await client.get("/v1/webhooks")).json()["webhooks"] == []
        for path in (f"/v1/webhooks/{id}/test", "/v1/webhooks/nonesuch/test"):
            assert (await client.post(path)).json()["code"] == "WebhookNotFound"
        assert (await client.delete(f"/v1/webhooks/{id}")).status_code == 404
        assert (await ada.post(f"/v1/webhooks/{id}/test")).json() == {"delivered": True}
        assert (await receiver.letter()).json["type"] == "webhook.test"
        receiver.answers = ["500 No"]
        refused = (await ada.post(f"/v1/webhooks/{id}/test")).json()
        assert (refused["code"], "500" in refused["message"]) == ("WebhookFailed", True)
        assert (await ada.post("/v1/webhooks/dead/retry", json={"id": "nonesuch"})).json()["code"] == "DeliveryNotFound"
        assert (await ada.get("/v1/webhooks/dead")).json() == {"deliveries": [], "let_go": 0}
    gone = await running.accounts.id_named("ada")
    assert len(running.service.webhooks.of(gone)) == 1
    await client.delete("/v1/accounts/ada")
    assert running.service.webhooks.of(gone) == []


async def test_no_secret_of_a_webhook_is_in_the_audit_log(running: Running, client: httpx2.AsyncClient, receiver: Hook) -> None:
    secret = new_secret()
    id = (await client.post("/v1/webhooks", json={"url": receiver.url, "secret": secret})).json()["id"]
    await client.delete(f"/v1/webhooks/{id}")
    text = (await client.get("/v1/audit")).text
    added, deleted = json.loads(text)["entries"]
    assert (added["action"], added["detail"]["id"], added["detail"]["host"]) == ("webhook.add", id, "127.0.0.1")
    assert (deleted["action"], deleted["detail"]) == ("webhook.delete", {"id": id})
    assert secret not in text


async def _until(holds: Any) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.005)
