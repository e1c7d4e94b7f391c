"""What an account may have, and how often it may ask: through the server's doors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from everforge import Everforge
from everforge.accounts.quotas import AccountQuotas, check_quota
from everforge.accounts.settings import AccountSettings, check
from everforge.accounts.throttle import KEYS_MAX, Buckets, Throttle
from everforge.egress.limits import OverLimit
from everforge.engine.base import Ending, How
from everforge.store.accounts import AccountRecord
from everforge.store.memory import MemoryStore
from everforge.store.quotas import Quota, QuotaRecord
from everforge.wire.errors import InvalidInput, QuotaExceeded, TooMany
from everforge.wire.ids import AccountId
from kit.background import in_background
from kit.house import quick
from kit.service import OPEN, Running, service

PATIENT = quick(admission_seconds=5.0)


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    async with service() as running:
        yield running


@pytest.fixture
async def owner(running: Running) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=running.url, headers=running.headers) as client:
        yield client


@pytest.fixture
async def ada(running: Running) -> AsyncIterator[httpx2.AsyncClient]:
    token = await running.account("ada")
    async with httpx2.AsyncClient(base_url=running.url, headers={"Authorization": f"Bearer {token}"}) as client:
        yield client


async def set_quota(owner: httpx2.AsyncClient, **quota: Any) -> dict[str, Any]:
    answer = await owner.patch("/v1/accounts/ada/quota", json=quota)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_an_account_has_no_more_machines_than_it_may(owner: httpx2.AsyncClient, ada: httpx2.AsyncClient) -> None:
    await set_quota(owner, machines=2)
    answers = await asyncio.gather(*(ada.post("/v1/machine/new", json={"name": f"m{n}"}) for n in range(6)))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 429, 429, 429, 429]
    refused = next(answer for answer in answers if answer.status_code == 429)
    body = refused.json()
    assert (body["code"], body["retry"], body["details"]["limit"], body["details"]["quota"]) == ("QuotaExceeded", "later", "machines", 2)
    assert int(refused.headers["retry-after"]) >= 1
    name = next(answer.json()["machine_name"] for answer in answers if answer.status_code == 200)
    assert (await ada.post(f"/v1/machine/{name}/fork", json={})).json()["code"] == "QuotaExceeded"
    await ada.delete(f"/v1/machine/{name}")
    assert (await ada.post("/v1/machine/new", json={})).status_code == 200
    assert (await owner.post("/v1/machine/new", json={})).status_code == 200  # others have their own
    assert 'everforge_limit_hits_total{limit="machines"} 5.0' in (await owner.get("/metrics")).text


async def test_the_machine_that_is_idle_longest_makes_room_in_its_own_account(
    owner: httpx2.AsyncClient, ada: httpx2.AsyncClient, running: Running
) -> None:
    await owner.post("/v1/machine/new", json={"name": "theirs"})
    await owner.post("/v1/machine/theirs/wake")
    await set_quota(owner, awake=1)
    for name in ("first", "second"):
        await ada.post("/v1/machine/new", json={"name": name})
        await ada.post(f"/v1/machine/{name}/exec", json={"instruction": {"code": f"x = '{name}'"}})
        assert (await ada.get(f"/v1/machine/{name}/exec/0/result")).json()["result"]["end"] == "value"
    states = {m["name"]: m["state"] for m in (await ada.get("/v1/machine/list")).json()["machines"]}
    assert states == {"first": "asleep", "second": "ready"}
    assert (await owner.get("/v1/machine/theirs")).json()["state"] == "ready"


@pytest.mark.parametrize(("quota", "limit"), [({"awake": 1}, "awake"), ({"memory_mb": 1500}, "memory_mb")])
async def test_where_all_are_busy_an_instruction_ends_with_an_error_that_may_be_tried_later(quota: dict[str, int], limit: str) -> None:
    async with service() as running, httpx2.AsyncClient(base_url=running.url, headers=running.headers) as owner:
        token = await running.account("ada")
        await set_quota(owner, **quota)
        async with httpx2.AsyncClient(base_url=running.url, headers={"Authorization": f"Bearer {token}"}) as ada:
            for name in ("first", "second"):
                await ada.post("/v1/machine/new", json={"name": name, "memory_mb": 1024})
                await ada.post(f"/v1/machine/{name}/exec", json={"instruction": {"code": "sleep(60)", "timeout_seconds": 60}})
                if name == "first":
                    while (await ada.get("/v1/machine/first")).json()["state"] != "busy":
                        await asyncio.sleep(0.01)
            result = (await ada.get("/v1/machine/second/exec/0/result")).json()["result"]
            assert (result["end"], result["retry"]) == ("error", "later")
            assert "this account may have" in result["error"]
            assert f'everforge_limit_hits_total{{limit="{limit}"}} 1.0' in (await owner.get("/metrics")).text
            await ada.post("/v1/machine/first/interrupt")


async def test_bytes_that_machines_exchange_count_against_the_quota_of_their_account(owner: httpx2.AsyncClient, running: Running) -> None:
    ada = (await running.accounts.identify(await running.account("ada"))).account
    await set_quota(owner, egress_bytes_per_day=100)
    allowances: Any = running.machines.forge.doors.allowances  # pyright: ignore[reportAttributeAccessIssue]
    await allowances.check(ada)
    with pytest.raises(OverLimit, match="100 bytes a day"):
        allowances.of(ada).spend(100)
    with pytest.raises(OverLimit):
        await allowances.check(ada)


async def test_a_machine_larger_than_the_quota_never_wakes(owner: httpx2.AsyncClient, ada: httpx2.AsyncClient) -> None:
    await set_quota(owner, memory_mb=512)
    await ada.post("/v1/machine/new", json={"name": "large", "memory_mb": 1024})
    answer = await ada.post("/v1/machine/large/wake")
    assert (answer.status_code, answer.json()["code"], answer.json()["details"]["limit"]) == (429, "QuotaExceeded", "memory_mb")


async def test_snapshots_stop_where_the_disk_does(
    owner: httpx2.AsyncClient, ada: httpx2.AsyncClient, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everforge.store.quotas.MB", 1)  # what the fake engine saves is small
    await ada.post("/v1/machine/new", json={"name": "one"})
    await ada.post("/v1/machine/one/hibernate")
    await set_quota(owner, disk_mb=1)
    for path in ("/v1/machine/one/snapshots", "/v1/machine/new", "/v1/machine/one/fork"):
        answer = await ada.post(path, json={})
        assert (answer.status_code, answer.json()["details"]["limit"]) == (429, "disk_mb")


async def points_of(client: httpx2.AsyncClient, name: str = "one") -> list[str]:
    return [point["id"] for point in (await client.get(f"/v1/machine/{name}/snapshots")).json()["snapshots"]]


async def run(client: httpx2.AsyncClient, number: int, name: str = "one") -> dict[str, Any]:
    await client.post(f"/v1/machine/{name}/exec", json={"instruction": {"code": f"x = {number}"}})
    return (await client.get(f"/v1/machine/{name}/exec/{number}/result")).json()["result"]


async def without_disk(owner: httpx2.AsyncClient, ada: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch, **machine: Any) -> None:
    """She has a machine that is awake, one snapshot, and no room for another."""
    monkeypatch.setattr("everforge.store.quotas.MB", 1)
    await ada.post("/v1/machine/new", json={"name": "one", **machine})
    await run(ada, 0)
    assert (await ada.post("/v1/machine/one/snapshots", json={"name": "kept"})).status_code == 200
    await set_quota(owner, disk_mb=1)


async def test_beyond_the_disk_no_history_is_kept_and_the_machine_says_so_until_it_is_again(
    owner: httpx2.AsyncClient, ada: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await without_disk(owner, ada, monkeypatch, history="each")
    before = await points_of(ada)
    for number in (1, 2):
        assert (await run(ada, number))["end"] != "error"
    assert await points_of(ada) == before
    error = (await ada.get("/v1/machine/one")).json()["error"]
    assert "no snapshot was taken" in error
    assert "no disk left" in error
    assert 'everforge_limit_hits_total{limit="disk_mb"} 1.0' in (await owner.get("/metrics")).text
    await set_quota(owner, disk_mb=0)
    await run(ada, 3)
    assert (await ada.post("/v1/machine/one/wake")).status_code == 200  # in its turn, behind the point
    assert len(await points_of(ada)) == len(before) + 1
    assert (await ada.get("/v1/machine/one")).json()["error"] is None


async def test_beyond_the_disk_an_instruction_says_that_it_is_not_durable(
    owner: httpx2.AsyncClient, ada: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await without_disk(owner, ada, monkeypatch, durability="each")
    before = await points_of(ada)
    result = await run(ada, 1)
    assert "not durable: this account has no disk left" in str(result)
    assert await points_of(ada) == before


@pytest.mark.parametrize("way", ["rollback", "reset"])
async def test_beyond_the_disk_a_machine_that_is_awake_does_not_go_back_and_one_that_sleeps_does(
    owner: httpx2.AsyncClient, ada: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    await without_disk(owner, ada, monkeypatch)
    before = await points_of(ada)
    refused = await ada.post(f"/v1/machine/one/{way}")
    assert (refused.status_code, refused.json()["code"], refused.json()["details"]["limit"]) == (429, "QuotaExceeded", "disk_mb")
    assert (await points_of(ada), (await ada.get("/v1/machine/one")).json()["state"]) == (before, "ready")
    assert (await ada.post("/v1/machine/one/hibernate")).status_code == 200
    assert (await ada.post(f"/v1/machine/one/{way}")).status_code == 200


async def test_beyond_the_disk_a_broken_machine_can_still_go_back(
    owner: httpx2.AsyncClient, ada: httpx2.AsyncClient, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    await without_disk(owner, ada, monkeypatch)
    assert running.house is not None
    account = await running.accounts.id_named("ada")
    record = (await running.machines.of(account).get("one")).record
    keeper = running.machines.forge.keepers.get(record.id)
    assert keeper is not None
    await keeper.operate("break", lambda: keeper.residency.lose(Ending(How.OUT_OF_MEMORY), None))
    assert (await ada.get("/v1/machine/one")).json()["state"] == "broken"
    assert (await ada.post("/v1/machine/one/rollback", json={"to": "kept"})).status_code == 200


async def test_a_fork_that_may_not_be_costs_its_source_no_save(owner: httpx2.AsyncClient, ada: httpx2.AsyncClient) -> None:
    await ada.post("/v1/machine/new", json={"name": "one"})
    await run(ada, 0)
    assert (await ada.post("/v1/machine/one/snapshots", json={"name": "kept"})).status_code == 200
    await set_quota(owner, machines=1)
    before = await points_of(ada)
    assert (await ada.post("/v1/machine/one/fork", json={})).json()["details"]["limit"] == "machines"
    assert await points_of(ada) == before
    from_kept = {"from_snapshot": {"machine": "one", "snapshot": "kept"}}
    assert (await ada.post("/v1/machine/new", json=from_kept)).json()["details"]["limit"] == "machines"


async def test_an_account_with_more_machines_than_it_may_have_by_now_still_takes_snapshots(
    owner: httpx2.AsyncClient, ada: httpx2.AsyncClient
) -> None:
    for name in ("one", "two"):
        await ada.post("/v1/machine/new", json={"name": name})
    await set_quota(owner, machines=1)
    assert (await ada.post("/v1/machine/one/snapshots", json={})).status_code == 200


async def test_quotas_are_shown_and_fall_back_to_the_settings() -> None:
    defaults = replace(OPEN, account_machines_max=7, account_awake_max=3)
    async with service(accounts=defaults) as running, httpx2.AsyncClient(base_url=running.url, headers=running.headers) as owner:
        token = await running.account("ada")
        headers = {"Authorization": f"Bearer {token}"}

        async def usage() -> dict[str, Any]:
            return (await owner.get("/v1/usage", headers=headers)).json()["quota"]

        assert await usage() == {"machines": 7, "awake": 3, "memory_mb": 0, "disk_mb": 0, "requests_per_second": 0.0, "egress_bytes_per_day": 0}
        assert (await set_quota(owner, machines=0, disk_mb=100))["machines"] == 0
        assert (await usage())["awake"] == 3
        assert (await set_quota(owner, machines=-1))["machines"] == 7
        assert {a["account"]: (a["quota"]["machines"], a["quota"]["disk_mb"]) for a in (await owner.get("/v1/accounts")).json()["accounts"]} == {
            "ada": (7, 100),
            "owner": (0, 0),
        }
        for wrong in ({"machines": -2}, {"machines": 1.5}, {"machines": "many"}, {"nonsense": 1}, {"awake": 2**60}):
            assert (await owner.patch("/v1/accounts/ada/quota", json=wrong)).status_code == 400, wrong
        assert (await owner.patch("/v1/accounts/nobody/quota", json={})).json()["code"] == "AccountNotFound"
        assert (await owner.patch("/v1/accounts/ada/quota", json={}, headers=headers)).status_code == 403
        entry = (await owner.get("/v1/audit", params={"action": "account.quota", "limit": 1})).json()["entries"][0]
        assert entry["detail"] == {"account": "ada", "machines": 0, "disk_mb": 100}


async def test_usage_counts_what_ran_and_how_long_machines_were_awake(ada: httpx2.AsyncClient) -> None:
    await ada.post("/v1/machine/new", json={"name": "one"})
    await ada.post("/v1/machine/one/exec", json={"instruction": {"code": "1"}})
    await ada.get("/v1/machine/one/exec/0/result")
    awake = (await ada.get("/v1/usage")).json()
    assert (awake["instructions"], awake["machines"], awake["awake"]) == (1, 1, 1)
    await ada.post("/v1/machine/one/hibernate")
    asleep = [(await ada.get("/v1/usage")).json()["awake_seconds"] for _ in range(2)]
    assert 0 < awake["awake_seconds"] <= asleep[0] == asleep[1]
    await ada.delete("/v1/machine/one")
    assert (await ada.get("/v1/usage")).json()["awake_seconds"] == asleep[0]


# --- requests per second ---------------------------------------------------------------------------------------------------------------


def test_a_bucket_lets_a_burst_pass_and_then_its_rate() -> None:
    now = 0.0
    buckets = Buckets(2.0, lambda: now)
    assert [buckets.take("a", 5.0) for _ in range(10)] == [0.0] * 10
    assert buckets.take("a", 5.0) == pytest.approx(0.2)
    assert buckets.take("b", 5.0) == 0.0
    now = 0.2
    assert buckets.take("a", 5.0) == 0.0
    assert buckets.take("a", 5.0) > 0
    now = 1000.0
    assert sum(buckets.take("a", 5.0) == 0.0 for _ in range(50)) == 10  # it does not fill for ever
    assert buckets.take("slow", 0.1) == 0.0
    assert buckets.take("slow", 0.1) == pytest.approx(10.0)


def test_a_rate_so_low_that_it_says_never_still_says_when() -> None:
    throttle = Throttle(OPEN)
    quota = Quota(requests_per_second=1e-320)  # as a store may hold it
    throttle.count(AccountId("ada"), quota)
    with pytest.raises(TooMany) as refused:
        throttle.count(AccountId("ada"), quota)
    assert refused.value.details["retry_after_seconds"] in range(1, 1_001)


@pytest.mark.parametrize("wrong", ["1e-320", "0.0009", "1e999", "-0.5", "NaN", "Infinity"])
async def test_a_rate_that_is_none_is_refused(owner: httpx2.AsyncClient, ada: httpx2.AsyncClient, wrong: str) -> None:
    answer = await owner.patch("/v1/accounts/ada/quota", content=f'{{"requests_per_second": {wrong}}}')
    assert (answer.status_code, answer.json()["code"]) == (400, "InvalidInput")
    with pytest.raises(InvalidInput):
        check_quota({"requests_per_second": float(wrong)})
    assert [(await ada.get("/v1/whoami")).status_code for _ in range(3)] == [200, 200, 200]


@pytest.mark.parametrize("rate", ["account_requests_per_second", "stranger_requests_per_second"])
def test_settings_have_no_such_rate_either(rate: str) -> None:
    with pytest.raises(InvalidInput, match=r"at least 0\.001"):
        check(replace(OPEN, **{rate: 1e-9}))


async def test_a_quota_that_is_set_while_the_old_one_is_read_counts() -> None:
    store = MemoryStore()
    account = AccountRecord(id=AccountId("ada"), name="ada", created_at=1.0)
    await store.accounts.add_account(account)
    quotas = AccountQuotas(store.accounts, OPEN)
    reads, go_on, read = asyncio.Event(), asyncio.Event(), store.accounts.quota

    async def slow(account: AccountId) -> QuotaRecord:
        found = await read(account)
        if not reads.is_set():  # the first alone
            reads.set()
            await go_on.wait()
        return found

    store.accounts.quota = slow
    asking = asyncio.ensure_future(quotas.of(account.id))
    await reads.wait()
    await quotas.change(account.id, {"machines": 3})
    go_on.set()
    assert (await asking).machines == 3
    assert (await quotas.of(account.id)).machines == 3


async def test_of_two_changes_at_once_both_count(owner: httpx2.AsyncClient, ada: httpx2.AsyncClient, running: Running) -> None:
    book = running.service.machines.forge.store.accounts
    read = book.quota

    async def slow(account: AccountId) -> QuotaRecord:
        found = await read(account)
        await asyncio.sleep(0.05)  # for as long as a disk may take
        return found

    book.quota = slow
    await asyncio.gather(set_quota(owner, machines=3), set_quota(owner, awake=2))
    shown = (await ada.get("/v1/usage")).json()["quota"]
    assert (shown["machines"], shown["awake"]) == (3, 2)
    assert await read(await running.service.accounts.id_named("ada")) == QuotaRecord(machines=3, awake=2)


async def test_what_is_known_is_the_later_of_two_changes_whichever_is_answered_last() -> None:
    store = MemoryStore()
    account = AccountRecord(id=AccountId("ada"), name="ada", created_at=1.0)
    await store.accounts.add_account(account)
    quotas, change, second_is_made = AccountQuotas(store.accounts, OPEN), store.accounts.change_quota, asyncio.Event()

    async def slow(account: AccountId, values: Mapping[str, Any]) -> QuotaRecord:
        changed = await change(account, values)
        if "machines" in values:
            await second_is_made.wait()
        return changed

    store.accounts.change_quota = slow
    first = asyncio.ensure_future(quotas.change(account.id, {"machines": 3}))
    await asyncio.sleep(0)
    await quotas.change(account.id, {"awake": 2})
    second_is_made.set()
    await first
    known = await quotas.of(account.id)
    assert (known.machines, known.awake) == (3, 2)


def test_buckets_are_bounded_whoever_comes() -> None:
    buckets = Buckets(2.0)
    for n in range(KEYS_MAX + 100):
        buckets.take(str(n), 1.0)
    assert len(buckets) == KEYS_MAX


def test_who_came_longest_ago_is_forgotten_first() -> None:
    buckets = Buckets(1.0, lambda: 0.0)
    assert buckets.take("busy", 1.0) == 0.0
    for n in range(KEYS_MAX * 2):
        buckets.take(str(n), 1.0)
        assert buckets.take("busy", 1.0) > 0


def test_strangers_from_however_many_addresses_give_no_account_a_full_bucket() -> None:
    throttle = Throttle(replace(OPEN, stranger_requests_per_second=1.0), lambda: 0.0)
    quota = Quota(requests_per_second=0.001)
    throttle.count(AccountId("ada"), quota)
    for n in range(KEYS_MAX + 1):
        throttle.count_stranger(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}")
    with pytest.raises(TooMany):
        throttle.count(AccountId("ada"), quota)


async def test_who_asks_too_often_is_told_when_to_come_again(owner: httpx2.AsyncClient, ada: httpx2.AsyncClient, running: Running) -> None:
    await set_quota(owner, requests_per_second=0.5)  # one, and then nothing for two seconds
    assert (await ada.get("/v1/whoami")).status_code == 200
    refused = await ada.get("/v1/whoami")
    body = refused.json()
    assert (refused.status_code, body["code"], body["retry"], body["details"]["limit"]) == (429, "TooMany", "later", "requests_per_second")
    assert 1 <= int(refused.headers["retry-after"]) <= 2
    assert (await owner.get("/v1/whoami")).status_code == 200
    assert 'everforge_limit_hits_total{limit="requests_per_second"} 1.0' in (await owner.get("/metrics")).text
    await set_quota(owner, requests_per_second=0)
    assert (await ada.get("/v1/whoami")).status_code == 200


async def test_instructions_over_websockets_count_as_requests(owner: httpx2.AsyncClient, ada: httpx2.AsyncClient, running: Running) -> None:
    await ada.post("/v1/machine/new", json={"name": "one"})
    async with connect(f"{running.ws}/v1/machine/one/connect", additional_headers={"Authorization": ada.headers["authorization"]}) as socket:
        await set_quota(owner, requests_per_second=0.001)
        for n in range(2):
            await socket.send(json.dumps({"type": "exec", "instruction": {"code": "1"}, "request_id": n}))
        replies = []
        while len(replies) < 2:
            message = json.loads(await socket.recv())
            if message["type"] in ("reply", "error"):
                replies.append(message)
    assert (replies[-1]["type"], replies[-1]["error"]["code"]) == ("error", "TooMany")


async def test_messages_of_forevervms_repl_count_as_requests_too(owner: httpx2.AsyncClient, ada: httpx2.AsyncClient, running: Running) -> None:
    await ada.post("/v1/machine/new", json={"name": "one"})
    async with connect(f"{running.ws}/v1/machine/one/repl", additional_headers={"Authorization": ada.headers["authorization"]}) as socket:
        await socket.recv()
        await set_quota(owner, requests_per_second=0.001)
        for n in range(2):
            await socket.send(json.dumps({"type": "exec", "instruction": {"code": "1"}, "request_id": n}))
        async with asyncio.timeout(10):
            while "TooMany: " not in str(message := json.loads(await socket.recv())):
                pass
    assert (message["type"], "requests a second" in message["result"]["error"]) == ("result", True)


async def test_strangers_are_counted_by_their_address_and_those_with_a_token_are_not_among_them() -> None:
    strict = AccountSettings(stranger_requests_per_second=0.01, request_burst_seconds=200.0)  # two, and then none for long
    async with service(accounts=strict) as running, httpx2.AsyncClient(base_url=running.url) as stranger:
        statuses = [(await stranger.get("/v1/whoami")).status_code for _ in range(6)]
        assert (statuses[0], statuses[-1]) == (401, 429)
        assert (await stranger.post("/login/abc")).status_code == 429
        assert (await stranger.get("/healthz")).status_code == 200
        for _ in range(20):
            assert (await stranger.get("/v1/whoami", headers=running.headers)).status_code == 200


REFUSED = {
    "for its scope": ("POST", "/v1/machine/new", 403),
    "for its tags": ("GET", "/v1/usage", 403),
    "for who it is": ("GET", "/v1/accounts", 403),
    "a machine that is not there": ("GET", "/v1/machine/none-such", 404),
    "a route that is not there": ("GET", "/v1/none-such", 404),
    "a method that is not there": ("PUT", "/v1/whoami", 405),
}


@pytest.mark.parametrize(("method", "path", "status"), REFUSED.values(), ids=list(REFUSED))
async def test_what_is_refused_counts_as_a_request_of_its_account(
    owner: httpx2.AsyncClient, ada: httpx2.AsyncClient, running: Running, method: str, path: str, status: int
) -> None:
    who = await running.accounts.identify(ada.headers["authorization"].removeprefix("Bearer "))
    weak = (await running.accounts.new_token(who, scopes=["read"], tags={"team": "red"})).token
    await set_quota(owner, requests_per_second=0.001)  # one, and then nothing for long
    answers = [await owner.request(method, path, headers={"Authorization": f"Bearer {weak}"}, json={}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [status, 429]
    assert answers[1].json()["details"]["limit"] == "requests_per_second"
    assert 'everforge_limit_hits_total{limit="requests_per_second"} 1.0' in (await owner.get("/metrics")).text
    assert (await ada.get("/v1/whoami")).status_code == 429  # it is the account's, whichever of its tokens asks


@pytest.mark.parametrize(
    ("path", "scopes", "status"), [("one/connect", ["read"], 403), ("none/connect", ["read", "exec"], 404), ("x", ["read"], 404)]
)
async def test_a_socket_that_is_refused_counts_too(
    owner: httpx2.AsyncClient, ada: httpx2.AsyncClient, running: Running, path: str, scopes: list[str], status: int
) -> None:
    who = await running.accounts.identify(ada.headers["authorization"].removeprefix("Bearer "))
    weak = (await running.accounts.new_token(who, scopes=scopes)).token
    await set_quota(owner, requests_per_second=0.001)
    statuses: list[int] = []
    for _ in range(2):
        with pytest.raises(InvalidStatus) as refused:
            async with connect(f"{running.ws}/v1/machine/{path}", additional_headers={"Authorization": f"Bearer {weak}"}):
                pass
        statuses.append(refused.value.response.status_code)
    assert statuses == [status, 429]


async def test_strangers_who_ask_for_what_is_not_there_are_counted_by_their_address() -> None:
    strict = AccountSettings(stranger_requests_per_second=0.01, request_burst_seconds=200.0)
    async with service(accounts=strict) as running, httpx2.AsyncClient(base_url=running.url) as stranger:
        asked = [("GET", "/none"), ("PUT", "/healthz"), ("GET", "/none")]
        assert [(await stranger.request(method, path)).status_code for method, path in asked] == [404, 405, 429]
        assert (await stranger.get("/none", headers=running.headers)).status_code == 404


@pytest.fixture
def thread() -> Iterator[Running]:
    with in_background() as running:
        yield running


def test_the_sdk_waits_as_long_as_it_is_told_and_no_longer_than_it_may(thread: Running) -> None:
    with Everforge(thread.token, thread.url) as owner:
        token = owner.accounts.create("ada").token
        owner.accounts.quota("ada", requests_per_second=2)
        with Everforge(token, thread.url) as ada:
            for _ in range(7):
                ada.whoami()  # some of them are refused at first, and asked again
        owner.accounts.quota("ada", requests_per_second=0.001)
        with Everforge(token, thread.url, retry_seconds=5) as ada:
            with pytest.raises(TooMany) as refused:
                [ada.whoami() for _ in range(3)]
            assert refused.value.retry_after_seconds > 5
        owner.accounts.quota("ada", requests_per_second=0, machines=1)
        with Everforge(token, thread.url) as ada:
            ada.create("one")
            with pytest.raises(QuotaExceeded):  # at once: to wait would not help
                ada.create("two")
