"""Answers and uploads on their way: they end with the token that asked for them, and what goes wrong in their middle cuts them off."""

from __future__ import annotations

import io
import json
import logging
import tarfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx2
import pytest

from everforge.machines.service import Machines
from everforge.server import connections
from kit.background import in_background
from kit.service import Running
from kit.wild import PATIENCE_SECONDS, Neighbour, Wild, request

MB = 1024 * 1024
SIZE = 24 * MB  # more than the kernel holds of one connection


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "LINGER_SECONDS", 0.3)
        with in_background() as running:
            yield running


class Token:
    """One that is there to be revoked."""

    def __init__(self, running: Running) -> None:
        self._client = httpx2.Client(base_url=running.url, headers=running.headers, timeout=PATIENCE_SECONDS)
        made = self._client.post("/v1/tokens").json()
        self._id, self.header = made["id"], {"Authorization": f"Bearer {made['token']}"}

    def revoke(self) -> None:
        assert self._client.delete(f"/v1/tokens/{self._id}").status_code == 200
        self._client.close()


def test_a_request_whose_token_was_revoked_before_its_last_byte_does_nothing(running: Running, neighbour: Neighbour) -> None:
    code = {"instruction": {"code": "1"}}
    for method, path, body in (("POST", "/v1/tokens", {}), ("POST", "/v1/machine/new", {}), ("POST", f"/v1/machine/{neighbour.name}/exec", code)):
        token = Token(running)
        text = json.dumps(body).encode().ljust(100)
        with Wild(running) as wild, httpx2.Client(base_url=running.url, headers=running.headers) as client:
            wild.send(request(method, path, None, b"", {**token.header, "Content-Length": str(len(text))}) + text[:50])
            wild.socket.settimeout(0.2)
            with pytest.raises(TimeoutError):  # it is waited for
                wild.socket.recv(1)
            wild.socket.settimeout(PATIENCE_SECONDS)
            token.revoke()
            before = [client.get(where).json() for where in ("/v1/tokens", "/v1/machine/list", f"/v1/machine/{neighbour.name}/exec")]
            wild.send(text[50:])
            assert wild.answer().status == 401
            assert [client.get(where).json() for where in ("/v1/tokens", "/v1/machine/list", f"/v1/machine/{neighbour.name}/exec")] == before


def put(running: Running, neighbour: Neighbour) -> None:
    with httpx2.Client(base_url=running.url, headers=running.headers, timeout=PATIENCE_SECONDS) as client:
        client.put(f"/v1/machine/{neighbour.name}/files/folder/large", content=b"x" * SIZE).raise_for_status()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # a dropped clerk is a thread here, not a process
@pytest.mark.parametrize("path", ["files/folder/large", "archive?path=folder"])
def test_a_download_ends_with_its_token(running: Running, neighbour: Neighbour, path: str) -> None:
    put(running, neighbour)
    token = Token(running)
    with Wild(running, small=True) as wild:
        wild.send(request("GET", f"/v1/machine/{neighbour.name}/{path}", headers=token.header))
        wild.until(b"\r\n\r\n")
        token.revoke()
        assert len(wild.rest()) < SIZE


@pytest.mark.parametrize("path", ["files/new", "archive?path=new"])
def test_an_upload_ends_with_its_token_and_leaves_nothing(running: Running, neighbour: Neighbour, path: str) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tarred:
        tarred.addfile(tarfile.TarInfo("x"))
    token = Token(running)
    with Wild(running) as wild:
        wild.send(request("PUT", f"/v1/machine/{neighbour.name}/{path}", headers=token.header, Content_Length=str(MB)) + made.getvalue())
        time.sleep(0.2)  # either way it must end: on its way, or before it has begun
        token.revoke()
        answer = wild.answer()
        assert (answer.status, answer.json()["code"]) == (401, "Unauthenticated")
    with httpx2.Client(base_url=running.url, headers=running.headers) as client:
        assert client.get(f"/v1/machine/{neighbour.name}/files").json()["files"] == []


def test_a_download_that_the_machine_cuts_is_cut_without_a_word_in_the_log(
    running: Running, neighbour: Neighbour, caplog: pytest.LogCaptureFixture
) -> None:
    put(running, neighbour)
    with Wild(running, small=True) as wild:
        wild.send(request("GET", f"/v1/machine/{neighbour.name}/files/folder/large", running))
        wild.until(b"\r\n\r\n")
        with httpx2.Client(base_url=running.url, headers=running.headers) as client:
            client.post(f"/v1/machine/{neighbour.name}/reset").raise_for_status()
        assert len(wild.rest()) < SIZE
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("form", ["application/x-ndjson", "text/event-stream"])
def test_a_mistake_of_the_servers_in_a_stream_cuts_it_and_is_told_once(
    running: Running, neighbour: Neighbour, form: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read: Callable[..., AsyncIterator[Any]] = Machines.read

    async def broken(*given: Any, **options: Any) -> AsyncIterator[Any]:
        async for event in read(*given, **options):
            yield event
            raise ZeroDivisionError("a mistake")

    with monkeypatch.context() as patch, Wild(running) as wild:
        patch.setattr(Machines, "read", broken)
        wild.send(request("GET", f"/v1/machine/{neighbour.name}/tape", running, Accept=form))
        assert not wild.rest().endswith(b"0\r\n\r\n")  # nobody takes it for whole
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.exc_info[0] for record in told if record.exc_info] == [ZeroDivisionError]
    assert "in the middle of its answer" in told[0].getMessage()
