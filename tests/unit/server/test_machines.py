"""Machines over HTTP: what a client says is what happens, and what happens is what it is told."""

from __future__ import annotations

import asyncio
import json
import time

import httpx2
import pytest
from websockets.asyncio.client import connect

from everforge import __version__
from everforge.server.doors import machines
from everforge.server.times import to_wire
from kit.house import quick
from kit.service import Running, service


def client_of(s: Running) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=s.url, headers=s.headers)


async def test_create_with_a_key_is_done_once() -> None:
    async with service() as s, client_of(s) as client:
        answers = [await client.post("/v1/machine/new", json={"tags": {"n": "1"}}, headers={"Idempotency-Key": "k"}) for _ in range(3)]
        assert len({answer.json()["machine_name"] for answer in answers}) == 1
        other = await client.post("/v1/machine/new", json={"tags": {"n": "2"}}, headers={"Idempotency-Key": "k"})
        assert (other.status_code, other.json()["code"]) == (409, "KeyReused")
        assert len((await client.get("/v1/machine/list")).json()["machines"]) == 1


async def test_a_machine_is_told_whole_and_changed_in_part() -> None:
    async with service() as s, client_of(s) as client:
        wanted = {
            "name": "mine",
            "tags": {"a": "1"},
            "metadata": {"deep": [1, {"x": None}]},
            "idle_seconds": 30.5,
            "expires_at": to_wire(time.time() + 3600),
        }
        assert (await client.post("/v1/machine/new", json=wanted)).status_code == 200
        shown = (await client.get("/v1/machine/mine")).json()
        assert {name: shown[name] for name in wanted} == wanted
        assert {"state", "position", "memory_bytes", "disk_bytes", "has_pending_instruction", "has_pending_instructions", "egress"} <= set(shown)
        changed = (await client.patch("/v1/machine/mine", json={"tags": {"b": "2"}, "expires_at": "never"})).json()
        assert (changed["tags"], changed["expires_at"], changed["metadata"]) == ({"b": "2"}, None, wanted["metadata"])
        assert (await client.delete("/v1/machine/mine")).json() == {"deleted": True}
        assert (await client.get("/v1/machine/mine")).status_code == 404


@pytest.mark.parametrize("path", ["/healthz", "/v1/whoami", "/nowhere", "/v1/machine/nobody"])
async def test_every_answer_tells_the_servers_version(path: str) -> None:
    async with service() as s, client_of(s) as client:
        for method in ("GET", "POST"):
            answer = await client.request(method, path)
            assert answer.headers["x-everforge-version"] == __version__
            assert answer.headers["x-request-id"]


async def test_lists_are_paged_filtered_and_stable() -> None:
    async with service() as s, client_of(s) as client:
        for n in range(5):
            await client.post("/v1/machine/new", json={"name": f"m{n}", "tags": {"even": str(n % 2 == 0)}})
        seen: list[str] = []
        after = None
        while True:
            page = (await client.post("/v1/machine/list", json={"limit": 2, **({"after": after} if after else {})})).json()
            seen += [machine["name"] for machine in page["machines"]]
            if (after := page["next"]) is None:
                break
            await client.post("/v1/machine/new", json={})  # one that comes meanwhile is newer, and not on a later page
        assert seen == ["m4", "m3", "m2", "m1", "m0"]
        even = (await client.get("/v1/machine/list", params={"tag": "even=True"})).json()["machines"]
        assert [machine["name"] for machine in even] == ["m4", "m2", "m0"]
        assert [m["name"] for m in (await client.get("/v1/machine/list", params={"name_prefix": "m3"})).json()["machines"]] == ["m3"]
        assert (await client.post("/v1/machine/m0/hibernate")).json()["state"] == "asleep"
        assert [m["name"] for m in (await client.get("/v1/machine/list", params={"state": "asleep"})).json()["machines"]] == ["m0"]


async def listed(client: httpx2.AsyncClient, **query: str | int) -> tuple[list[str], int]:
    """All of them, and how many pages they took."""
    names: list[str] = []
    pages, after = 0, None
    while True:
        page = (await client.get("/v1/machine/list", params={**query, **({"after": after} if after else {})})).json()
        names += [machine["name"] for machine in page["machines"]]
        pages += 1
        if (after := page["next"]) is None:
            return names, pages


async def test_a_page_of_one_state_is_not_empty_while_there_are_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "BATCH", 2)
    async with service(machines=quick(timeout_seconds=60.0)) as s, client_of(s) as client:
        for n in range(9):
            await client.post("/v1/machine/new", json={"name": f"m{n}"})
            await client.post(f"/v1/machine/m{n}/exec", json={"instruction": {"code": "hang()" if n in (0, 3, 4) else "1"}})
        for n in range(9):
            while (await client.get(f"/v1/machine/m{n}")).json()["state"] != ("busy" if n in (0, 3, 4) else "ready"):
                await asyncio.sleep(0.01)
            if n not in (0, 3, 4):
                await client.get(f"/v1/machine/m{n}/exec/0/result")  # it is ready before its instruction, too
        first = (await client.get("/v1/machine/list", params={"state": "busy", "limit": 1})).json()
        assert [machine["name"] for machine in first["machines"]] == ["m4"]
        for limit in (1, 2, 3, 10):
            assert (await listed(client, state="busy", limit=limit))[0] == ["m4", "m3", "m0"]
        assert (await listed(client, limit=2))[0] == [f"m{n}" for n in range(8, -1, -1)]
        monkeypatch.setattr(machines, "LOOKED_AT_MAX", 2)  # a page looks at so many, and then says where to go on
        names, pages = await listed(client, state="busy", limit=2)
        assert names == ["m4", "m3", "m0"]
        assert pages > 2


async def test_fork_snapshot_rollback_and_reset_go_through() -> None:
    async with service() as s, client_of(s) as client:

        async def run(name: str, code: str) -> str | None:
            seq = (await client.post(f"/v1/machine/{name}/exec", json={"instruction": {"code": code}})).json()["instruction_seq"]
            return (await client.get(f"/v1/machine/{name}/exec/{seq}/result")).json()["result"].get("value")

        await client.post("/v1/machine/new", json={"name": "a"})
        await run("a", "x = 1")
        forked = (await client.post("/v1/machine/a/fork", json={"names": ["b", "c"]})).json()
        assert forked == {"machine_name": "b", "machine_names": ["b", "c"]}
        assert (await client.get("/v1/machine/b")).json()["forked_from"] == "a"
        assert await run("b", "x") == "1"
        taken = (await client.post("/v1/machine/a/snapshots", json={"name": "before"})).json()
        await run("a", "x = 2")
        done = (await client.post("/v1/machine/a/rollback", json={"to": "before"})).json()
        assert done["snapshot"]["id"] == taken["id"]
        assert await run("a", "x") == "1"
        await client.post("/v1/machine/a/rollback", json={"to": done["undo"]})
        assert await run("a", "x") == "2"
        assert "before" in [snap["name"] for snap in (await client.get("/v1/machine/a/snapshots")).json()["snapshots"]]
        assert (await client.delete("/v1/machine/a/snapshots/before")).json() == {"deleted": True}
        assert (await client.post("/v1/machine/a/reset")).json()["undo"]
        listed = (await client.get("/v1/machine/a/exec", params={"limit": 2})).json()
        assert [i["instruction_seq"] for i in listed["instructions"]] == [0, 1]
        assert listed["next"] == 1
        assert (await client.get("/v1/machine/a/exec/0")).json()["code"] == "x = 1"


async def test_a_machine_that_cannot_be_saved_goes_back_with_discard_alone() -> None:
    async with service() as s, client_of(s) as client:
        assert s.house is not None
        await client.post("/v1/machine/new", json={"name": "a"})
        await client.post("/v1/machine/a/snapshots", json={"name": "before"})
        s.house.host.failing_saves = 1000
        for verb, body in (("rollback", {"to": "before"}), ("reset", {})):
            for given in (body, {**body, "discard": False}):
                refused = await client.post(f"/v1/machine/a/{verb}", json=given)
                assert (refused.status_code, refused.json()["code"]) == (500, "SaveFailed")
                assert "--discard" in refused.json()["message"]
            done = await client.post(f"/v1/machine/a/{verb}", json={**body, "discard": True})
            assert (done.status_code, done.json()["undo"]) == (200, None)
            assert (await client.post(f"/v1/machine/a/{verb}", json={**body, "discard": "yes"})).status_code == 400


async def test_usage_and_metrics_count_what_was_done() -> None:
    async with service() as s, client_of(s) as client:
        await client.post("/v1/machine/new", json={"name": "a"})
        await client.post("/v1/machine/a/exec", json={"instruction": {"code": "1"}})
        await client.get("/v1/machine/a/exec/0/result")
        used = (await client.get("/v1/usage")).json()
        assert (used["machines"], used["instructions"]) == (1, 1)
        text = (await client.get("/metrics")).text
        assert 'everforge_http_requests_total{method="GET",route="/v1/usage",status="200"} 1.0' in text
        assert 'everforge_machines{state="ready"} 1.0' in text


@pytest.mark.parametrize("form", ["application/x-ndjson", "text/event-stream"])
async def test_a_followed_tape_goes_on_from_its_cursor(form: str) -> None:
    async with service() as s, client_of(s) as client:
        await client.post("/v1/machine/new", json={"name": "a"})
        await client.post("/v1/machine/a/exec", json={"instruction": {"code": "print(1)\nprint(2)"}})
        await client.get("/v1/machine/a/exec/0/result")
        whole = (await client.get("/v1/machine/a/tape")).json()
        cut = whole["entries"][0]["cursor"]
        rest = (await client.get("/v1/machine/a/tape", params={"after": cut}, headers={"Accept": form})).text
        types = [entry["type"] for entry in whole["entries"][1:]]
        assert [kind for kind in types if kind in rest] == types
        assert f'"position":{whole["entries"][0]["position"]},' not in rest


async def test_a_browser_that_comes_again_goes_on_behind_the_last_event_that_it_has_seen() -> None:
    async with service() as s, client_of(s) as client:
        await client.post("/v1/machine/new", json={"name": "a"})
        await client.post("/v1/machine/a/exec", json={"instruction": {"code": "print(1)\nprint(2)"}})
        await client.get("/v1/machine/a/exec/0/result")
        events = {"Accept": "text/event-stream"}
        whole = _events((await client.get("/v1/machine/a/tape", headers=events)).text)
        assert [id for id, _ in whole] == sorted({id for id, _ in whole})
        for seen in range(len(whole)):
            last = {"Last-Event-ID": str(whole[seen][0])}
            again = await client.get("/v1/machine/a/tape", params={"after": -1}, headers=events | last)  # before what its address says
            assert _events(again.text) == whole[seen + 1 :]
        for nonsense in ("", "text", "9" * 30, "-5", "1.5"):
            again = await client.get("/v1/machine/a/tape", headers=events | {"Last-Event-ID": nonsense})
            assert _events(again.text) == whole


def _events(text: str) -> list[tuple[int, str]]:
    """Ids and data; comments are signs of life."""
    found: list[tuple[int, str]] = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if fields:
            assert json.loads(fields["data"])["type"] == fields["event"]
            found.append((int(fields["id"]), fields["data"]))
    return found


async def test_the_live_interpreter_completes_over_http_and_on_the_websocket() -> None:
    async with service() as s, client_of(s) as client:
        await client.post("/v1/machine/new", json={"name": "a"})
        await client.post("/v1/machine/a/exec", json={"instruction": {"code": "wonderful_name = 1"}})
        await client.get("/v1/machine/a/exec/0/result")
        found = (await client.post("/v1/machine/a/complete", json={"code": "x = wonderf"})).json()
        assert (found["matches"], found["start"], found["end"], found["busy"]) == (["wonderful_name"], 4, 11, False)
        async with connect(f"{s.ws}/v1/machine/a/connect", additional_headers=s.headers) as socket:
            await socket.send(json.dumps({"type": "complete", "request_id": 1, "code": "wonderf"}))
            while (reply := json.loads(await socket.recv()))["type"] != "reply":
                pass
            assert reply["matches"] == ["wonderful_name"]
        wrong = await client.post("/v1/machine/a/complete", json={"code": "x", "cursor": 5})
        assert (wrong.status_code, wrong.json()["code"]) == (400, "InvalidInput")


async def test_the_tape_names_an_instructions_variables_and_keeps_their_values() -> None:
    async with service() as s, client_of(s) as client:
        await client.post("/v1/machine/new", json={"name": "a"})
        await client.post("/v1/machine/a/exec", json={"instruction": {"code": "1", "env": {"API_KEY": "s3cret"}}})
        await client.get("/v1/machine/a/exec/0/result")
        text = (await client.get("/v1/machine/a/tape")).text
        assert '"env":["API_KEY"]' in text
        assert "s3cret" not in text
