"""Closed addresses stay closed however they are written."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everforge.egress import addresses
from everforge.egress.addresses import is_closed, parse
from everforge.egress.rules import normal_host

LOOPBACK = [
    "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0X7F000001", "017700000001", "0177.0.0.1", "0x7f.0x0.0x0.0x1", "0x7f.1", "127.0.0.01",
    "::1", "[::1]", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "::FFFF:7F00:1", "[::ffff:7f00:1]", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1",
    "2002:7f00:1::", "2002:7f00:0001:0:0:0:0:1",
]  # fmt: skip
CLOSED = [
    *LOOPBACK, "0.0.0.0", "0", "::", "0.1.2.3", "10.0.0.1", "012.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "100.64.0.1", "169.254.1.1",
    "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "fe80::1", "fec0::1", "fc00::1",
    "fd12:3456::1", "ff02::1", "2001:db8::1", "3fff::1", "100::1", "5f00::1", "64:ff9b:1::808:808", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "64:ff9b::10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::1", "2002:c0a8:1::", "::10.0.0.1", "::ffff:10.0.0.1", "::ffff:0:192.168.0.1",
]  # fmt: skip
METADATA = [
    "169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe",
    "64:ff9b::169.254.169.254", "2002:a9fe:a9fe::", "169.254.170.2", "168.63.129.16", "::ffff:168.63.129.16", "100.100.100.200", "192.0.0.192",
    "fd00:ec2::254", "FD00:0EC2:0:0:0:0:0:254", "fd20:ce::254",
]  # fmt: skip


@pytest.mark.parametrize("text", LOOPBACK)
def test_this_computer_is_known_in_every_spelling(text: str) -> None:
    address = parse(text)
    assert address is not None
    why = is_closed(address)
    assert why is not None
    assert "this computer" in why


@pytest.mark.parametrize("text", CLOSED)
def test_what_is_not_public_is_closed(text: str) -> None:
    address = parse(text)
    assert address is not None
    assert is_closed(address)


@pytest.mark.parametrize("text", METADATA)
def test_the_metadata_services_of_clouds_are_closed_also_where_their_address_is_public(text: str) -> None:
    address = parse(text)
    assert address is not None
    assert (is_closed(address) or "").startswith("a cloud's metadata service")


@pytest.mark.parametrize("text", ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700::1111", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8", "2a00:1450::1"])
def test_the_public_network_is_open(text: str) -> None:
    address = parse(text)
    assert address is not None
    assert is_closed(address) is None or text.startswith("::ffff"), is_closed(address)


@pytest.mark.parametrize(
    "text",
    [
        "example.com",
        "127.0.0.1.example.com",
        "deadbeef",
        "1e100.net",
        "a127.0.0.1",
        "",
        ".",
        "127.0.0.1 x",
        "fe80::1%eth0",
        "::1%lo",
        "[::1",
        "1.2.3.4.5",
    ],
)
def test_a_name_and_nonsense_are_no_address(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize("text", ["127.0.0.1.", "2130706433.", "0x7f000001.", "127.1."])
def test_a_dot_at_the_end_makes_no_name_of_an_address(text: str) -> None:
    assert normal_host(text) == "127.0.0.1"


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1..",
        "999.1.1.1",
        "1.2.3.4.5",
        "a.0x1",
        "0x100.0xfff1.1",
        "a.0x",
        "0x\xad",
        "a..b",
        "-a.com",
        "a-.com",
        "a" * 64 + ".com",
        "a b",
        "fe80::1%lo",
        "exa\tmple.com",
        "*.com",
    ],
)
def test_what_no_program_should_ask_for_is_no_host(text: str) -> None:
    assert normal_host(text) is None


def test_names_have_one_spelling() -> None:
    assert normal_host("EXAMPLE.Com.") == "example.com"
    assert normal_host("Bücher.example") == "xn--bcher-kva.example"
    assert [normal_host(name) for name in ("straße.example", "STRAẞE.example", "νέος.example", "a\u200db.example", "a\u200cb.example")] == [None] * 5


@pytest.mark.parametrize(
    "text", ["１２７.0.0.1", "①②⑦.0.0.1", "127。0。0。1", "0x7f．0.0.1", "0x\xad7f000001", "0x7f.\u200b1", "１２７.0x1", "2130\xad706433."]
)
def test_an_address_in_other_digits_or_with_characters_that_vanish_is_that_address(text: str) -> None:
    """Lookups turn them into ASCII: as a name it would be known by another spelling here than there."""
    assert normal_host(text) == "127.0.0.1"


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_every_ipv4_address_is_the_same_however_it_is_written(number: int) -> None:
    dotted = socket.inet_ntoa(number.to_bytes(4, "big"))
    parts = dotted.split(".")
    spellings = [str(number), hex(number), f"0{number:o}", ".".join(hex(int(p)) for p in parts), ".".join(f"0{int(p):o}" for p in parts)]
    assert {str(parse(text)) for text in spellings} == {dotted}


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_an_ipv4_address_inside_an_ipv6_one_is_no_more_open_than_by_itself(number: int) -> None:
    dotted = socket.inet_ntoa(number.to_bytes(4, "big"))
    alone = parse(dotted)
    assert alone is not None
    if is_closed(alone) and number > 1:
        for text in (f"::ffff:{dotted}", f"64:ff9b::{dotted}", f"::{dotted}", f"::ffff:0:{dotted}", f"2002:{number >> 16:x}:{number & 0xFFFF:x}::"):
            found = parse(text)
            assert found is not None
            assert is_closed(found), text


@settings(deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_an_address_or_none(text: str) -> None:
    found = parse(text)
    assert found is None or isinstance(is_closed(found), str | None)
    assert normal_host(text) is None or normal_host(normal_host(text) or "") == normal_host(text)


def test_an_address_of_this_computer_is_ours_though_it_were_public() -> None:
    assert addresses.is_of_this_computer(addresses.IPv4Address("127.0.0.1"))
    assert not addresses.is_of_this_computer(addresses.IPv4Address("93.184.216.34"))
    assert not addresses.is_of_this_computer(addresses.IPv6Address("2606:4700::1111"))
