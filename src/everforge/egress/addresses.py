"""Which addresses a machine may never reach unless the owner of the server opened one exactly. Every spelling of an address is one address here."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
from ipaddress import IPv4Address, IPv6Address

Address = IPv4Address | IPv6Address

_METADATA = {  # where clouds tell a computer who it is, and give it passwords; some of them are public addresses by their number
    "169.254.169.254", "169.254.169.253", "169.254.170.2", "169.254.170.23", "168.63.129.16", "100.100.100.200", "192.0.0.192",
    "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254",
}  # fmt: skip
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_GLOBAL = ipaddress.IPv6Network("2000::/3")  # all that was ever given out for the public network
_EXAMPLES = ipaddress.IPv6Network("3fff::/20")  # for documents; Python does not know it yet
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_TRANSLATED = ipaddress.IPv6Network("::ffff:0:0:0/96")
_NUMERIC = re.compile(r"[0-9a-fx.]+", re.IGNORECASE)
NEAR = 4  # of these words
_WORDS = (
    ("is_unspecified", "the address of no computer"),
    ("is_loopback", "this computer itself (loopback)"),
    ("is_link_local", "a link-local address"),
    ("is_multicast", "a multicast address"),
    ("is_private", "a private address"),
    ("is_site_local", "a private address"),
    ("is_reserved", "a reserved address"),
)


def parse(host: str) -> Address | None:
    """An address in any of the spellings that system libraries take for one: 127.1, 0x7f000001, 2130706433, 0177.0.0.1, [::1]. None for a name."""
    text = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    with contextlib.suppress(ValueError):
        found = ipaddress.ip_address(text)
        return None if isinstance(found, IPv6Address) and found.scope_id else found
    if _NUMERIC.fullmatch(text) and text[:1].isdigit():
        with contextlib.suppress(OSError, UnicodeError):
            return IPv4Address(socket.inet_aton(text))
    return None


def is_metadata(address: Address) -> str | None:
    if any(str(one) in _METADATA for one in (address, *_within(address))):
        return "a cloud's metadata service"
    return None


def is_near(address: Address) -> str | None:
    """Why it is closed even where private addresses are open: this computer, its own link, its cloud."""
    for one in (address, *_within(address)):
        if why := is_metadata(one) or next((words for name, words in _WORDS[:NEAR] if getattr(one, name)), None):
            return why
    return None


def is_closed(address: Address) -> str | None:
    """Why it is closed to machines; None for one in the public network."""
    if why := is_metadata(address):
        return why
    for inner in _within(address):
        if why := is_closed(inner):
            return f"{why}, written as an IPv6 address"
    if address in _NAT64:
        return None  # how a computer without IPv4 reaches the public network
    for name, words in _WORDS:
        if getattr(address, name, False):
            return words
    is_public = address.is_global and (address.version == 4 or (address in _GLOBAL and address not in _EXAMPLES))
    return None if is_public else "not an address of the public network"


def _within(address: Address) -> list[IPv4Address]:
    """IPv4 addresses that this one stands for, to some translator on the way."""
    if isinstance(address, IPv4Address):
        return []
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if any(address in network for network in (_NAT64, _COMPATIBLE, _TRANSLATED)) and int(address) > 1:
        found.append(IPv4Address(int(address) & 0xFFFF_FFFF))
    return [inner for inner in found if inner is not None]


def is_of_this_computer(address: Address) -> bool:
    """Also a public address may be our own: nobody can bind to another's."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True
