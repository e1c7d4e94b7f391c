"""What one account may take of a real server: a process of its own on the real engine, by HTTP alone, with small limits."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from everforge import Everforge
from kit.commandserver import CommandServer, command_server

pytestmark = pytest.mark.gvisor

UPLOAD_BYTES = 1_000_000
QUEUE = 5


@pytest.fixture(scope="module")
def narrow() -> Iterator[CommandServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVERFORGE_UPLOAD_BYTES_MAX", str(UPLOAD_BYTES))
        patch.setenv("EVERFORGE_QUEUE_MAX", str(QUEUE))
        patch.setenv("EVERFORGE_ADMISSION_SECONDS", "2")
        with command_server("minimal") as served:
            yield served


@pytest.fixture
def owner(narrow: CommandServer) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=narrow.url, headers={"Authorization": f"Bearer {narrow.token}"}, timeout=60) as client:
        yield client


@pytest.fixture
def ada(narrow: CommandServer, owner: httpx2.Client) -> Iterator[httpx2.Client]:
    """An account of its own, which is gone behind the test."""
    token = owner.post("/v1/accounts", json={"account_name": "ada"}).json()["token"]
    with httpx2.Client(base_url=narrow.url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
        yield client
        set_quota(owner, requests_per_second=0)
        for machine in client.get("/v1/machine/list").json()["machines"]:
            assert client.delete(f"/v1/machine/{machine['name']}").status_code == 200
    assert owner.delete("/v1/accounts/ada").status_code == 200


def set_quota(owner: httpx2.Client, **quota: float) -> None:
    answer = owner.patch("/v1/accounts/ada/quota", json=quota)
    assert answer.status_code == 200, answer.text


def keep_busy(client: httpx2.Client, name: str) -> None:
    """With its first instruction, which runs until it is interrupted."""
    code = "print('here', flush=True)\nimport time\nwhile True: time.sleep(0.05)"
    client.post(f"/v1/machine/{name}/exec", json={"instruction": {"code": code, "timeout_seconds": 120}})
    with client.stream("GET", f"/v1/machine/{name}/exec/0/stream-result") as told:
        assert any("here" in line for line in told.iter_lines())


def pieces(size: int) -> Iterator[bytes]:
    """Of which nobody knows before how many there are."""
    for _ in range(size // 10_000):
        yield b"x" * 10_000


def test_an_upload_has_no_more_bytes_than_it_may_and_the_machine_keeps_nothing_of_a_larger_one(ada: httpx2.Client) -> None:
    ada.post("/v1/machine/new", json={"name": "one"})
    for content in (b"x" * UPLOAD_BYTES, pieces(UPLOAD_BYTES)):
        assert ada.put("/v1/machine/one/files/fits", content=content).status_code == 200
    for content in (b"x" * (UPLOAD_BYTES + 1), pieces(UPLOAD_BYTES + 10_000)):
        answer = ada.put("/v1/machine/one/files/large", content=content)
        assert (answer.status_code, answer.json()["code"]) == (413, "TooLarge")
    files = {file["path"].rpartition("/")[2]: file["size_bytes"] for file in ada.get("/v1/machine/one/files").json()["files"]}
    assert files["fits"] == UPLOAD_BYTES
    assert "large" not in files


def test_no_more_instructions_wait_for_a_machine_than_may_and_those_that_do_are_run(ada: httpx2.Client) -> None:
    ada.post("/v1/machine/new", json={"name": "one"})
    keep_busy(ada, "one")
    answers = [ada.post("/v1/machine/one/exec", json={"instruction": {"code": f"{n}"}}) for n in range(QUEUE * 3)]
    taken = [answer.json()["instruction_seq"] for answer in answers if answer.status_code == 200]
    assert QUEUE - 1 <= len(taken) <= QUEUE + 1
    assert {(answer.status_code, answer.json()["code"]) for answer in answers[len(taken) :]} == {(429, "QueueFull")}
    ada.post("/v1/machine/one/interrupt")
    ends = [ada.get(f"/v1/machine/one/exec/{number}/result").json()["result"] for number in taken]
    assert [(end["end"], end["value"]) for end in ends] == [("value", f"{n}") for n in range(len(taken))]


def test_an_account_has_no_more_machines_than_it_may(owner: httpx2.Client, ada: httpx2.Client) -> None:
    set_quota(owner, machines=2)
    answers = [ada.post("/v1/machine/new", json={"name": f"m{n}"}) for n in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert (answers[2].json()["code"], answers[2].json()["details"]["limit"]) == ("QuotaExceeded", "machines")
    assert ada.post("/v1/machine/m0/fork", json={}).json()["code"] == "QuotaExceeded"
    assert owner.post("/v1/machine/new", json={}).status_code == 200  # others have their own


@pytest.mark.parametrize(("quota", "limit"), [({"awake": 1}, "awake"), ({"memory_mb": 700}, "memory_mb")])
def test_an_account_has_no_more_machines_awake_than_it_may(owner: httpx2.Client, ada: httpx2.Client, quota: dict[str, int], limit: str) -> None:
    set_quota(owner, **quota)
    for name in ("busy", "other"):
        ada.post("/v1/machine/new", json={"name": name, "memory_mb": 512})
    keep_busy(ada, "busy")
    refused = ada.post("/v1/machine/other/wake")
    assert (refused.status_code, refused.json()["code"], refused.json()["details"]["limit"]) == (429, "QuotaExceeded", limit)
    assert ada.get("/v1/machine/busy").json()["state"] == "busy"
    ada.post("/v1/machine/busy/interrupt")
    ada.get("/v1/machine/busy/exec/0/result")
    assert ada.post("/v1/machine/other/wake").status_code == 200  # the one that is idle made room
    assert ada.get("/v1/machine/busy").json()["state"] == "asleep"


def test_an_account_sends_no_more_requests_a_second_than_it_may_refused_ones_included(
    narrow: CommandServer, owner: httpx2.Client, ada: httpx2.Client
) -> None:
    set_quota(owner, requests_per_second=0.001)  # one, and then none for long
    assert ada.get("/v1/machine/none-such").status_code == 404
    refused = ada.get("/v1/whoami")
    assert (refused.status_code, refused.json()["code"], refused.json()["details"]["limit"]) == (429, "TooMany", "requests_per_second")
    assert int(refused.headers["retry-after"]) >= 1
    with Everforge(narrow.token, narrow.url) as other:
        assert other.whoami() == "owner"
