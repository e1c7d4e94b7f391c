"""What the server tells of limits that were met: the names in it are of machines that are there, and it takes little room."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx2
import pytest

from everforge.server.lookout import Bursts
from everforge.signals import Signal
from kit.service import QUIET, Running, service

LARGE = {"instruction": {"code": "x" * 5_000}}


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    async with service(replace(QUIET, body_bytes_max=2_000)) as running:
        yield running


@pytest.fixture
async def ada(running: Running) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {"Authorization": f"Bearer {await running.account('ada')}"}
    async with httpx2.AsyncClient(base_url=running.url, headers=headers) as client:
        yield client


@pytest.fixture
def heard(running: Running) -> list[Signal]:
    heard: list[Signal] = []
    running.service.signals.listen(heard.append)
    return heard


async def test_a_limit_names_a_machine_only_where_the_account_has_it(running: Running, ada: httpx2.AsyncClient, heard: list[Signal]) -> None:
    await ada.post("/v1/machine/new", json={"name": "hers"})
    await ada.post("/v1/machine/new", json={"name": "gone"})
    await ada.delete("/v1/machine/gone")
    await ada.post("/v1/machine/new", json={"name": "of-the-owner"}, headers=running.headers)
    for name in ("hers", "gone", "of-the-owner", "none-such", "A" * 10_000, "%F0%9F%98%80"):
        assert (await ada.post(f"/v1/machine/{name}/exec", json=LARGE)).status_code == 413
    assert [signal.machine for signal in heard if signal.kind == "limit.hit"] == ["hers", None, None, None, None, None]


async def test_who_sends_too_much_is_told_of_once_whatever_machines_they_name(running: Running, ada: httpx2.AsyncClient, heard: list[Signal]) -> None:
    await ada.post("/v1/machine/new", json={"name": "hers"})
    await ada.patch("/v1/accounts/ada/quota", json={"requests_per_second": 0.5}, headers=running.headers)
    await ada.get("/v1/whoami")
    for n in range(20):
        assert (await ada.post(f"/v1/machine/{'hers' if n % 2 else n}/interrupt")).status_code == 429
    assert {(signal.machine, signal.detail["limit"]) for signal in heard if signal.kind == "limit.hit"} == {(None, "requests_per_second")}


async def test_a_limit_is_told_also_when_nobody_can_say_whether_the_machine_is_there(
    running: Running, ada: httpx2.AsyncClient, heard: list[Signal], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*args: object) -> None:
        raise OSError("no disk")

    monkeypatch.setattr(running.machines.forge.store, "find", fails)
    assert (await ada.post("/v1/machine/one/exec", json=LARGE)).status_code == 413
    assert [signal.machine for signal in heard if signal.kind == "limit.hit"] == [None]


def test_what_is_remembered_of_bursts_takes_little_memory_whatever_it_is_called() -> None:
    bursts = Bursts(60.0)
    tracemalloc.start()
    try:
        for n in range(200):
            assert bursts.count(("limit", "ada", f"{n} {'x' * 60_000}", "TooLarge"), 1)
            assert not bursts.count(("limit", "ada", f"{n} {'x' * 60_000}", "TooLarge"), 1)
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()
