"""The whole path once: a client, the server, a machine, and back."""

from __future__ import annotations

import json

import httpx2
from websockets.asyncio.client import connect

from kit.service import service


async def test_a_client_creates_a_machine_runs_code_and_reads_what_it_did() -> None:
    async with service() as s, httpx2.AsyncClient(base_url=s.url, headers=s.headers) as client:
        assert (await client.get("/v1/whoami")).json() == {"account": "owner"}
        name = (await client.post("/v1/machine/new", json={"tags": {"a": "b"}})).json()["machine_name"]
        given = (await client.post(f"/v1/machine/{name}/exec", json={"instruction": {"code": "print('hello')\n6 * 7"}})).json()
        assert given == {"instruction_seq": 0, "interrupted": False, "machine": name}
        result = (await client.get(f"/v1/machine/{name}/exec/0/result")).json()
        assert result["result"]["value"] == "42"
        lines = (await client.get(f"/v1/machine/{name}/exec/0/stream-result")).text.splitlines()
        assert [json.loads(line)["type"] for line in lines] == ["output", "result"]
        (listed,) = (await client.get("/v1/machine/list", params={"tag": "a=b"})).json()["machines"]
        assert listed["name"] == name
        tape = (await client.get(f"/v1/machine/{name}/tape")).json()
        assert "accepted" in [entry["type"] for entry in tape["entries"]]


async def test_both_websockets_run_an_instruction() -> None:
    async with service() as s:
        async with connect(f"{s.ws}/v1/machine/new/repl", additional_headers=s.headers) as socket:
            name = json.loads(await socket.recv())["machine_name"]
            await socket.send(json.dumps({"type": "exec", "instruction": {"code": "print(1)\n2"}, "request_id": 0}))
            kinds = [json.loads(await socket.recv())["type"] for _ in range(3)]
            assert kinds == ["exec_received", "output", "result"]
        async with connect(f"{s.ws}/v1/machine/{name}/connect?after=-1", additional_headers=s.headers) as socket:
            await socket.send(json.dumps({"type": "exec", "instruction": {"code": "3"}, "request_id": "x", "key": "k"}))
            seen = []
            while not seen or seen[-1].get("value") != "3":
                seen.append(json.loads(await socket.recv()))
            assert seen[0]["type"] == "connected"
            assert {"reply", "accepted", "output", "ended"} <= {message["type"] for message in seen}
