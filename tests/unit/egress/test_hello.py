"""Which server a client of TLS asks for, out of any bytes."""

from __future__ import annotations

import contextlib
import hashlib
import ssl

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everforge.egress.hello import HELLO_BYTES_MAX, RECORDS_MAX, Asked, NotTls, asks_again, before_hello, server_name


def real(name: str | None, protocols: list[str] | None = None) -> bytes:
    context = ssl.create_default_context()
    context.check_hostname = name is not None
    if protocols:
        context.set_alpn_protocols(protocols)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


def records(body: bytes, size: int) -> bytes:
    return b"".join(b"\x16\x03\x01" + len(p).to_bytes(2, "big") + p for p in (body[n : n + size] for n in range(0, len(body), size)))


def made(extensions: bytes) -> bytes:
    body = b"\x03\x03" + bytes(32) + b"\0" + b"\0\x02\x13\x01" + b"\x01\0" + len(extensions).to_bytes(2, "big") + extensions
    return records(b"\x01" + len(body).to_bytes(3, "big") + body, 16_000)


def named(name: bytes, kind: int = 0) -> bytes:
    entry = bytes([kind]) + len(name).to_bytes(2, "big") + name
    listed = len(entry).to_bytes(2, "big") + entry
    return b"\0\0" + len(listed).to_bytes(2, "big") + listed


WHOLE = real("Example.com", ["h2", "http/1.1"])


@pytest.mark.parametrize("name", ["example.com", "a.b.c.example", "xn--bcher-kva.example", None])
def test_a_real_client_is_understood(name: str | None) -> None:
    assert server_name(hello := real(name)) == Asked(name, len(hello))


def test_every_beginning_of_it_wants_more() -> None:
    assert {server_name(WHOLE[:n]) for n in range(len(WHOLE))} == {None}
    assert server_name(WHOLE + b"and more") == Asked("Example.com", len(WHOLE))


@settings(deadline=None)
@given(st.integers(-(-len(WHOLE[5:]) // RECORDS_MAX), 600))
def test_how_it_is_split_over_records_makes_no_difference(size: int) -> None:
    assert server_name(hello := records(WHOLE[5:], size)) == Asked("Example.com", len(hello))


def test_one_that_comes_in_more_records_than_anybody_needs_is_refused_before_it_is_whole() -> None:
    """Each byte of it would have everything before it read once more."""
    tiny = records(WHOLE[5:], 1)
    assert server_name(tiny[: RECORDS_MAX * 6 - 1]) is None
    with pytest.raises(NotTls):
        server_name(tiny[: RECORDS_MAX * 6])


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n", b"\x15\x03\x01\0\x02\x01\0", b"\x16\x02\0\0\x05hello", b"\x16\x03\x01\0\0", b"\x16\x03\x01\xff\xff", b"\x16\x03\x01\0\x04\x02\0\0\0",
        b"\x16\x03\x01\0\x04\x01\xff\xff\xff", b"\x80\x2e\x01\x03\x01", made(named(b"a.example") + named(b"b.example")), made(named(b"\xff.example")),
        made(named(b"a.example", kind=1)), made(b"\0\0\0\x05\0\x00" + b"abc"), made(b"\0\0\0\xff"), made(b"\0\0\0\0"), made(b"\0"),
    ],
)  # fmt: skip
def test_what_is_not_the_beginning_of_tls_or_could_be_read_in_two_ways_is_refused(data: bytes) -> None:
    with pytest.raises(NotTls):
        server_name(data)


def test_a_client_without_extensions_names_nobody() -> None:
    body = b"\x03\x01" + bytes(32) + b"\0" + b"\0\x02\x13\x01" + b"\x01\0"
    hello = records(b"\x01" + len(body).to_bytes(3, "big") + body, 9000)
    assert server_name(hello) == Asked(None, len(hello))


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_give_an_answer_or_not_tls(data: bytes) -> None:
    for read in (server_name, asks_again, before_hello):
        with contextlib.suppress(NotTls):
            read(data)


def test_a_hello_with_something_behind_it_in_its_record_is_refused() -> None:
    with pytest.raises(NotTls):
        server_name(records(WHOLE[5:] + b"more", 16_000))


AGAIN = b"\x02\0\0\x22\x03\x03" + hashlib.sha256(b"HelloRetryRequest").digest()


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_server_that_asks_for_another_hello_is_told_from_one_that_does_not(size: int) -> None:
    said = records(AGAIN, size)
    assert {asks_again(said[:n]) for n in range(len(said))} == {None}
    assert asks_again(said)
    other = records(AGAIN[:-1] + b"x", size)
    assert asks_again(other) is False
    assert [asks_again(data) for data in (b"", b"\x15", b"\x15\x03\x03\0\x02", b"HTTP/1.1 200 OK", b"\x16\x03\x03\0\0" * 9000)] == [
        None,
        *[False] * 4,
    ]


@settings(deadline=None)
@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255))
def test_any_byte_of_it_changed_gives_an_answer_or_not_tls(at: int, value: int) -> None:
    with contextlib.suppress(NotTls):
        server_name(WHOLE[:at] + bytes([value]) + WHOLE[at + 1 :])


def test_it_is_never_waited_for_longer_than_a_hello_may_be() -> None:
    """Who goes on asking for more beyond the limit is refused by whoever reads; here the length that is announced is what counts."""
    with pytest.raises(NotTls):
        server_name(records(b"\x01" + (HELLO_BYTES_MAX + 1).to_bytes(3, "big") + bytes(100), 50))
