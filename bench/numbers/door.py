"""A trivial instruction from a client in another process: over our WebSocket and over HTTP, against a Jupyter kernel and a bare relay."""

from __future__ import annotations

import http.client
import json
import time
from urllib.parse import urlsplit

from bench import jupyter
from bench.house import House
from bench.measure import Result, in_turns, percentile, result
from bench.relay import relayed
from bench.service import ANSWER_SECONDS, Server, started

CODE = "1+1"
WARM_UP = 30  # the first ones of a fresh interpreter are slower


class Http:
    """One connection that is kept: an instruction is given, then its result waited for."""

    def __init__(self, server: Server, machine: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=ANSWER_SECONDS)
        self._headers = server.headers
        self._path = f"/v1/machine/{machine}/exec"
        self._body = json.dumps({"instruction": {"code": CODE}})

    def run(self) -> str:
        number = self._ask("POST", self._path, self._body)["instruction_seq"]
        return self._ask("GET", f"{self._path}/{number}/result")["result"]["value"]

    def _ask(self, method: str, path: str, body: str | None = None) -> dict[str, dict[str, str]]:
        self._connection.request(method, path, body, self._headers)
        return json.loads(self._connection.getresponse().read())

    def close(self) -> None:
        self._connection.close()


async def measure(house: House, count: int) -> list[Result]:
    with jupyter.kernel() as kernel:
        async with started(house.folder / "service") as server, relayed(house) as relay:
            http_door = Http(server, await server.create())
            async with server.talk(await server.create()) as talk:

                async def socket() -> float:
                    began = time.perf_counter()
                    assert await talk.run(CODE) == "2"
                    return time.perf_counter() - began

                async def over_http() -> float:
                    began = time.perf_counter()
                    assert http_door.run() == "2"
                    return time.perf_counter() - began

                async def bare() -> float:
                    began = time.perf_counter()
                    assert await relay.run(CODE) == "2"
                    return time.perf_counter() - began

                async def jupyters() -> float:
                    return kernel.seconds(CODE)[0]

                await in_turns(WARM_UP, socket, over_http, bare, jupyters)
                ours, asked, by_relay, cells = await in_turns(count, socket, over_http, bare, jupyters)
            http_door.close()
    notes = {"ours p99 ms": percentile(ours, 99), "relay p99 ms": percentile(by_relay, 99)}
    socket_side, kernel_side = "exec until its end, on one WebSocket", "a cell through a kernel's channels, until it is idle"
    return [
        result("1-jupyter", ours, cells, (socket_side, kernel_side)),
        result("1-relay", ours, by_relay, (socket_side, "a WebSocket straight onto the pipes of the same guest"), notes=notes),
        result("2", asked, cells, ("exec and result on one connection", kernel_side), notes={"p99 ms": percentile(asked, 99)}),
    ]
