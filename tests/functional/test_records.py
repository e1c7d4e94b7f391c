"""What a server of the real engine writes down and tells: audit log, webhooks, quotas, usage; by `everforge serve`, as a user starts it."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx2
import pytest

from kit.commandserver import CommandServer, command_server

pytestmark = [pytest.mark.gvisor]
TOLD_SECONDS = 30.0


@pytest.fixture(scope="module")
def letters() -> Iterator[tuple[str, queue.Queue[dict[str, Any]]]]:
    """A receiver on loopback, and what it gets."""
    found: queue.Queue[dict[str, Any]] = queue.Queue()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Receiver) as receiver:
        thread = threading.Thread(target=receiver.serve_forever)
        thread.start()
        yield f"127.0.0.1:{receiver.server_port}", found
        receiver.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def server(letters: tuple[str, queue.Queue[dict[str, Any]]]) -> Iterator[CommandServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVERFORGE_WEBHOOK_HOSTS_OPEN", letters[0])
        with command_server("minimal") as served:
            yield served


def everforge(server: CommandServer, *words: str) -> Any:
    env = {**os.environ, "EVERFORGE_URL": server.url, "EVERFORGE_TOKEN": server.token}
    done = subprocess.run([sys.executable, "-m", "everforge", *words, "--json"], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_machines_life_is_written_down_told_and_counted(server: CommandServer, letters: tuple[str, queue.Queue[dict[str, Any]]]) -> None:
    place, told = letters
    with client(server.url, server.token) as owner:
        owner.post("/v1/webhooks", json={"url": f"http://{place}/", "events": ["machine.created", "machine.slept", "limit.hit"]}).raise_for_status()
        token = owner.post("/v1/accounts", json={"account_name": "ada"}).json()["token"]
        owner.patch("/v1/accounts/ada/quota", json={"machines": 1}).raise_for_status()
        with client(server.url, token) as ada:
            name = ada.post("/v1/machine/new", json={}).json()["machine_name"]
            refused = ada.post(f"/v1/machine/{name}/fork", json={})
            assert (refused.status_code, refused.json()["code"]) == (429, "QuotaExceeded")
            ada.post(f"/v1/machine/{name}/exec", json={"instruction": {"code": "6 * 7"}})
            assert ada.get(f"/v1/machine/{name}/exec/0/result").json()["result"]["value"] == "42"
            ada.post(f"/v1/machine/{name}/hibernate")
            usage = ada.get("/v1/usage").json()
            assert (usage["machines"], usage["instructions"], usage["quota"]["machines"]) == (1, 1, 1)
            assert usage["awake_seconds"] > 0
            ada.delete(f"/v1/machine/{name}")
        mine = owner.post("/v1/machine/new", json={}).json()["machine_name"]
        owner.post(f"/v1/machine/{mine}/hibernate")
        kinds = {(letter["type"], letter["account"], letter["machine"]) for letter in [told.get(timeout=TOLD_SECONDS) for _ in range(3)]}
        assert kinds == {("limit.hit", "ada", name), ("machine.created", "owner", mine), ("machine.slept", "owner", mine)}
        entries = owner.get("/v1/audit", params={"account": "ada", "machine": name}).json()["entries"]
    assert [entry["action"] for entry in entries] == ["machine.create", "machine.fork", "machine.exec", "machine.hibernate", "machine.delete"]
    assert everforge(server, "audit", "verify")["sound"]


def client(url: str, token: str) -> httpx2.Client:
    return httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=120)
