"""Rules of what a machine may reach, as people write them.

example.com           HTTP and HTTPS on their usual ports, 80 and 443
*.example.com         every name below it, at any depth (not example.com itself)
example.com:8443      HTTP and HTTPS on that port; example.com:* on every port
tcp://db.example.com:5432    plain TCP, whatever is spoken there, through SOCKS5 or CONNECT
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from everforge.wire.errors import InvalidInput

from . import addresses

WEB_PORTS = frozenset({80, 443})
RULES_MAX = 200
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_TWO_NAMES = re.compile("[ßẞς\u200c\u200d]")  # means another name to older programs than to newer ones
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")  # no name ends in one: it is an address that is none


@dataclass(frozen=True, slots=True)
class Rule:
    text: str  # in its one spelling
    host: str  # of *.host when `below`
    below: bool = False
    port: int | None = None  # None: the usual ones
    any_port: bool = False
    tcp: bool = False

    def matches(self, host: str, port: int) -> bool:
        named = host.endswith(f".{self.host}") if self.below else host == self.host
        return named and (self.any_port or (port == self.port if self.port is not None else port in WEB_PORTS))


def parse_rule(text: str) -> Rule:
    """Raises InvalidInput that says what a rule looks like."""
    tcp = text.startswith("tcp://")
    rest = text.removeprefix("tcp://").removeprefix("https://").removeprefix("http://").removesuffix("/")
    host, port_text = split_port(rest)
    below = host.startswith("*.")
    name = normal_host(host.removeprefix("*."))
    if name is None or (below and addresses.parse(name) is not None):
        raise InvalidInput(f"{text[:100]!r} is not a rule: write a host such as api.example.com, *.example.com, example.com:8443 or tcp://host:5432")
    any_port = port_text == "*"
    port = None if any_port else port_of(port_text)
    if port_text and port is None and not any_port:
        raise InvalidInput(f"the port of {text[:100]!r} is not a number from 1 to 65535")
    if tcp and port is None:
        raise InvalidInput(f"{text[:100]!r} needs one port: plain TCP is allowed port by port, as in tcp://db.example.com:5432")
    shown = f"[{name}]" if ":" in name else name
    spelled = f"{'tcp://' if tcp else ''}{'*.' if below else ''}{shown}{':*' if any_port else f':{port}' if port else ''}"
    return Rule(spelled, name, below, port, any_port, tcp)


def split_port(text: str) -> tuple[str, str]:
    if text.startswith("[") and "]" in text:
        host, _, port = text.partition("]")
        return host[1:], port.removeprefix(":")
    if text.count(":") > 1:
        return text, ""  # an IPv6 address
    host, _, port = text.partition(":")
    return host, port


def port_of(text: str) -> int | None:
    """None: no port."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535 else None


def normal_host(text: str) -> str | None:
    """The one spelling of a host: lower case, no dot at the end, names of other scripts in their ASCII form, addresses as such. None: no host."""
    name = text.removesuffix(".")
    if not name.isascii():
        if _TWO_NAMES.search(name):
            return None
        try:
            name = name.encode("idna").decode("ascii")  # first: what is left of other digits, or of characters that vanish, may be an address
        except UnicodeError:
            return None
    found = addresses.parse(name)
    if found is not None:
        return str(found)
    name = name.lower()
    labels = name.split(".")
    if not name or len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels) or _NUMBER.fullmatch(labels[-1]):
        return None
    return name
