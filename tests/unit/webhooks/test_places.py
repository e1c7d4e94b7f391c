"""An account cannot make the server knock at doors of its own network, however the address is written. No packet leaves: all is decided before."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import NoReturn

import pytest

from everforge.webhooks.places import NotReached, Place, checked_address, place_of
from everforge.webhooks.post import post
from everforge.wire.errors import InvalidInput
from kit.hooks import hook
from kit.site import Authority

CLOSED = [
    "https://127.0.0.1/", "https://127.1/", "https://2130706433/", "https://0x7f.0.0.1/", "https://0177.0.0.1/",
    "https://0.0.0.0/", "https://10.0.0.5/", "https://192.168.1.1:8443/", "https://172.16.0.1/", "https://169.254.169.254/latest/meta-data",
    "https://100.64.0.1/", "https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://[::ffff:a9fe:a9fe]/", "https://[fd00::1]/",
    "https://[fe80::1]/", "https://[64:ff9b::a00:1]/", "https://[2002:7f00:1::]/", "https://224.0.0.1/", "https://100.100.100.200/",
]  # fmt: skip
WRONG = [
    "", "example.org", "ftp://example.org/", "https://", "https:///path", "https://user:password@example.org/", "https://example.org/#part", "https://example.org:0x/",
    "https://example.org:99999/", "https://exa mple.org/", "https://exämple.org/", "https://example.org\\@127.0.0.1/", "https://example.org/\r\nX: y", 7, None, "https://" + "a" * 3000,
    "http://example.org/", "https://example.org:25/", "https://example.org:0/", "file:///etc/passwd",
]  # fmt: skip


def answering(*addresses: str):
    async def resolve(host: str, port: int) -> Sequence[str]:
        return addresses

    return resolve


@pytest.mark.parametrize("url", CLOSED)
def test_closed_addresses_are_refused_in_every_spelling(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"no webhook may point to|is not the address"):
        place_of(url, ())


@pytest.mark.parametrize("url", WRONG)
def test_what_is_no_address_of_a_webhook_is_refused(url: object) -> None:
    with pytest.raises(InvalidInput):
        place_of(url, ())


def test_good_addresses_are_taken_apart() -> None:
    assert place_of("https://Hooks.Example.org/a/b?c=d", ()) == Place(True, "hooks.example.org", 443, "/a/b?c=d", False)
    assert place_of("https://example.org:8443", ()) == Place(True, "example.org", 8443, "/", False)
    assert place_of("http://10.0.0.5:9000/x", ["10.0.0.5:9000"]) == Place(False, "10.0.0.5", 9000, "/x", True)


@pytest.mark.parametrize("url", ["http://10.0.0.5:9001/", "http://10.0.0.6:9000/", "https://10.0.0.5/"])
def test_what_the_owner_opened_is_open_exactly(url: str) -> None:
    with pytest.raises(InvalidInput):
        place_of(url, ["10.0.0.5:9000"])


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["93.184.215.14", "10.0.0.1"], ["93.184.215.14", "::ffff:169.254.169.254"], ["fe80::1%lo"]])
async def test_a_name_is_refused_when_any_address_it_stands_for_is_closed(addresses: list[str]) -> None:
    place = place_of("https://rebinding.example.org/", ())
    with pytest.raises(NotReached, match="no webhook may point there") as refused:
        await checked_address(place, answering(*addresses))
    assert not any(address.partition("%")[0] in str(refused.value) for address in addresses)  # names here are not everybody's to look up


async def test_an_address_of_this_computer_is_closed_though_it_is_a_public_one(monkeypatch: pytest.MonkeyPatch) -> None:
    own = "93.184.215.14"
    monkeypatch.setattr("everforge.webhooks.places.is_of_this_computer", lambda address: str(address) == own)  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
    with pytest.raises(InvalidInput, match="this computer itself"):
        place_of(f"https://{own}/", ())
    with pytest.raises(NotReached, match="this computer itself"):
        await checked_address(place_of("https://own.example.org/", ()), answering(own))


async def test_who_has_a_certificate_that_nobody_signed_is_told_nothing() -> None:
    told: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        told.append(await reader.read())
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0, ssl=Authority().context("hooks.example.org"))
    port = server.sockets[0].getsockname()[1]
    place = place_of(f"https://hooks.example.org:{port}/", [f"hooks.example.org:{port}"])
    with pytest.raises(NotReached, match="TLS is not good: CERTIFICATE_VERIFY_FAILED"):
        await post(place, {}, b"{}", resolve=answering("127.0.0.1"), seconds=5)
    server.close()
    assert not any(told)


async def test_an_answer_whose_first_line_has_no_end_is_not_read_for_ever() -> None:
    sent = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        with contextlib.suppress(ConnectionError):
            while sent < 64 * 2**20:
                writer.write(b"HTTP/1.1 200 " + b"x" * 2**16)
                await writer.drain()
                sent += 2**16
        writer.close()

    server = await asyncio.start_server(endless, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(NotReached, match="does not speak HTTP"):
        await post(place_of(f"http://127.0.0.1:{port}/", [f"127.0.0.1:{port}"]), {}, b"{}", resolve=answering("127.0.0.1"), seconds=30)
    assert sent < 32 * 2**20  # what fits into the buffers on the way
    server.close()


async def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that changes its answer is asked once."""
    asked, dialled = list[str](), list[str]()

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["93.184.215.14"] if len(asked) == 1 else ["127.0.0.1"]

    async def dial(host: str, *_: object, **__: object) -> NoReturn:
        dialled.append(host)
        raise ConnectionRefusedError  # no packet leaves

    monkeypatch.setattr(asyncio, "open_connection", dial)
    with pytest.raises(NotReached, match="cannot be reached"):
        await post(place_of("https://rebinding.example.org/", ()), {}, b"{}", resolve=resolve, seconds=5)
    assert (asked, dialled) == (["rebinding.example.org"], ["93.184.215.14"])


async def test_a_receiver_is_called_by_the_name_that_was_given() -> None:
    async with hook() as receiver:
        opened = place_of(f"http://some.name:{receiver.port}/", [f"some.name:{receiver.port}"])
        await post(opened, {}, b"{}", resolve=answering("127.0.0.1"), seconds=5)
        assert (await receiver.letter()).headers["host"] == f"some.name:{receiver.port}"


@pytest.mark.parametrize("answer", ["301 Moved", "302 Found", "307 Temporary Redirect", "404 Not Found", "500 No", "100 Continue"])
async def test_only_a_2xx_is_a_delivery_and_no_redirect_is_followed(answer: str) -> None:
    async with hook("204 No Content") as elsewhere, hook(f"{answer}\r\nLocation: {elsewhere.url}") as receiver:
        with pytest.raises(NotReached, match=answer.split()[0]):
            await post(place_of(receiver.url, [receiver.place]), {}, b"{}", resolve=answering("127.0.0.1"), seconds=5)
        assert elsewhere.letters.empty()


async def test_who_says_nothing_or_no_http_or_is_not_there_is_not_reached() -> None:
    async with hook() as receiver:
        receiver.silent = True
        with pytest.raises(NotReached, match="no answer within"):
            await post(place_of(receiver.url, [receiver.place]), {}, b"{}", resolve=answering("127.0.0.1"), seconds=0.05)

    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example.org ESMTP\r\n" + b"x" * 100_000)
        writer.close()

    server = await asyncio.start_server(nonsense, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    place = place_of(f"http://127.0.0.1:{port}/", [f"127.0.0.1:{port}"])
    with pytest.raises(NotReached, match="does not speak HTTP"):
        await post(place, {}, b"{}", resolve=answering("127.0.0.1"), seconds=5)
    secure = place_of(f"https://127.0.0.1:{port}/", [f"127.0.0.1:{port}"])
    with pytest.raises(NotReached, match="TLS"):
        await post(secure, {}, b"{}", resolve=answering("127.0.0.1"), seconds=5)
    server.close()
    await server.wait_closed()
    with pytest.raises(NotReached, match=r"cannot be reached: Connection refused$"):
        await post(place, {}, b"{}", resolve=answering("127.0.0.1"), seconds=5)
