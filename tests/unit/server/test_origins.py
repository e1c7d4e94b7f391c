"""Pages of other servers, in a browser: closed to all of them, open to those that the owner named."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from everforge.server.settings import ServerSettings, check
from everforge.wire.errors import InvalidInput
from kit.service import QUIET, Running, service

OURS, THEIRS = "https://app.example.org", "https://evil.example.net"
QUESTION = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type,idempotency-key"}


@pytest.fixture
async def closed() -> AsyncIterator[Running]:
    async with service() as running:
        yield running


@pytest.fixture
async def opened() -> AsyncIterator[Running]:
    async with service(replace(QUIET, cors_origins=(OURS + "/", "http://localhost:5173"))) as running:
        yield running


async def ask(running: Running, method: str, path: str, headers: Mapping[str, str]) -> httpx2.Response:
    async with httpx2.AsyncClient(base_url=running.url) as client:
        return await client.request(method, path, headers={**running.headers, **headers})


def leave(response: httpx2.Response) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name.startswith("access-control-")}


async def test_nothing_is_said_to_pages_until_the_owner_names_them(closed: Running) -> None:
    for method, more in (("OPTIONS", QUESTION), ("GET", {})):
        answer = await ask(closed, method, "/v1/whoami", {"Origin": OURS, **more})
        assert leave(answer) == {}
    assert (await ask(closed, "OPTIONS", "/v1/whoami", {"Origin": OURS, **QUESTION})).status_code == 405


async def test_a_named_page_is_told_what_it_may_and_reads_every_answer(opened: Running) -> None:
    question = await ask(opened, "OPTIONS", "/v1/machine/new", {"Origin": OURS, **QUESTION})
    assert question.status_code == 204
    assert question.headers["access-control-allow-origin"] == OURS
    assert question.headers["vary"] == "Origin"
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert method in question.headers["access-control-allow-methods"]
    for name in ("Authorization", "Idempotency-Key", "Range"):
        assert name in question.headers["access-control-allow-headers"]
    for path, status in (("/v1/whoami", 200), ("/v1/machine/none", 404), ("/nowhere", 404)):
        answer = await ask(opened, "GET", path, {"Origin": OURS})
        assert answer.status_code == status
        assert answer.headers["access-control-allow-origin"] == OURS
        assert "X-Everforge-Version" in answer.headers["access-control-expose-headers"]


async def test_a_page_that_is_not_named_gets_nothing_though_others_are(opened: Running) -> None:
    for origin in (THEIRS, "null", OURS + ".evil.example.net", "http://app.example.org", OURS + ":8443"):
        assert leave(await ask(opened, "OPTIONS", "/v1/whoami", {"Origin": origin, **QUESTION})) == {}
        assert leave(await ask(opened, "GET", "/v1/whoami", {"Origin": origin})) == {}


async def test_credentials_are_never_offered_since_there_are_no_cookies(opened: Running) -> None:
    assert "access-control-allow-credentials" not in (await ask(opened, "OPTIONS", "/v1/whoami", {"Origin": OURS, **QUESTION})).headers


async def open_socket(running: Running, origin: str | None, *, by_header: bool = False) -> None:
    url = f"{running.ws}/v1/machine/new/connect" + ("" if by_header else f"?_forevervm_jwt={running.token}")
    async with connect(url, origin=origin, additional_headers=running.headers if by_header else {}) as socket:  # pyright: ignore[reportArgumentType]
        await socket.recv()


async def test_websockets_of_other_pages_are_refused_in_the_handshake(opened: Running) -> None:
    for origin in (THEIRS, "null"):
        with pytest.raises(InvalidStatus) as refused:
            await open_socket(opened, origin)
        assert refused.value.response.status_code == 403
        assert b"cors_origins" in (refused.value.response.body or b"")
    await open_socket(opened, OURS)
    await open_socket(opened, opened.url)  # a page of its own
    await open_socket(opened, None)  # no browser
    await open_socket(opened, THEIRS, by_header=True)  # no page can set it


async def test_a_star_opens_it_to_all_pages_with_a_token() -> None:
    async with service(replace(QUIET, cors_origins=("*",))) as running:
        assert (await ask(running, "GET", "/v1/whoami", {"Origin": THEIRS})).headers["access-control-allow-origin"] == THEIRS
        await open_socket(running, THEIRS)


@pytest.mark.parametrize("origin", ["app.example.org", "https://app.example.org/path", "ftp://x", "https://", ""])
def test_what_is_no_origin_is_refused_at_the_start(origin: str) -> None:
    with pytest.raises(InvalidInput, match="cors_origins"):
        check(ServerSettings(cors_origins=(origin,)))
