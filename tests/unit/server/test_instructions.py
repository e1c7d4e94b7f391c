"""Instructions through our own doors: their states, and interrupting one of them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
from websockets.asyncio.client import connect

from kit.service import service


async def _give(client: httpx2.AsyncClient, code: str, **options: Any) -> int:
    given = await client.post("/v1/machine/m/exec", json={"instruction": {"code": code, "timeout_seconds": 60, **options}})
    return given.json()["instruction_seq"]


async def _states(client: httpx2.AsyncClient) -> list[str]:
    return [each["state"] for each in (await client.get("/v1/machine/m/exec")).json()["instructions"]]


async def test_an_instruction_says_whether_it_runs_or_waits_for_its_client() -> None:
    async with service() as s, httpx2.AsyncClient(base_url=s.url, headers=s.headers) as client:
        await client.post("/v1/machine/new", json={"name": "m"})
        asking = await _give(client, "ask(1)", functions=["ask"])
        await _give(client, "hang()")
        async with asyncio.timeout(10):
            while await _states(client) != ["waiting", "queued"]:
                await asyncio.sleep(0.01)
        assert (await client.get(f"/v1/machine/m/exec/{asking}")).json()["state"] == "waiting"
        assert (await client.post(f"/v1/machine/m/exec/{asking}/calls/0", json={"value": 1})).json() == {"answered": True}
        async with asyncio.timeout(10):
            while await _states(client) != ["ended", "running"]:
                await asyncio.sleep(0.01)


async def test_one_instruction_is_interrupted_by_its_number_over_http_and_websocket() -> None:
    async with service() as s, httpx2.AsyncClient(base_url=s.url, headers=s.headers) as client:
        await client.post("/v1/machine/new", json={"name": "m"})
        running, waiting, last = [await _give(client, code) for code in ("hang()", "1", "'last'")]
        interrupt = "/v1/machine/m/interrupt"
        assert (await client.post(interrupt, json={"instruction": waiting})).json() == {"interrupted": True}
        missing = await client.post(interrupt, json={"instruction": 99})
        assert (missing.status_code, missing.json()["code"]) == (404, "InstructionNotFound")
        for bad in ({"instruction": waiting, "pending": True}, {"instruction": -1}, {"instruction": "1"}, {"instruction": 2**70}):
            assert (await client.post(interrupt, json=bad)).status_code == 400, bad
        async with connect(f"{s.ws}/v1/machine/m/connect", additional_headers=s.headers) as socket:
            assert json.loads(await socket.recv())["type"] == "connected"
            await socket.send(json.dumps({"type": "interrupt", "instruction": running, "request_id": 1}))
            while (reply := json.loads(await socket.recv()))["type"] != "reply":
                pass
            assert reply["interrupted"] is True
        ends = [(await client.get(f"/v1/machine/m/exec/{n}/result")).json()["result"]["end"] for n in (running, waiting, last)]
        assert ends == ["interrupted", "interrupted", "value"]
        assert (await client.post(interrupt, json={"instruction": running})).json() == {"interrupted": False}
