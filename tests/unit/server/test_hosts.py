"""Under which names a server answers: those of this computer and of its owner's choice, while nobody else is to reach it."""

from __future__ import annotations

import socket

import pytest

from everforge.server.hosts import Hosts
from everforge.server.settings import ServerSettings
from everforge.wire.errors import HostUnknown

OURS = [
    "",
    "localhost",
    "LOCALHOST:8787",
    "localhost.",
    "machines.localhost",
    "127.0.0.1",
    "127.0.0.1:8787",
    "[::1]",
    "[::1]:8787",
    "::1",
    "192.0.2.7",
    socket.gethostname(),
]
THEIRS = [
    "example.org",
    "example.org:8787",
    "localhost.example.org",
    "127.0.0.1.nip.example",
    "notlocalhost",
    "a:b:c",
    "[example.org]:80",
    "2130706433",
    "0x7f000001",
]


@pytest.mark.parametrize("listening", ["127.0.0.1", "::1", "localhost", "127.0.0.53"])
@pytest.mark.parametrize("header", OURS)
def test_names_of_this_computer_are_its_own(listening: str, header: str) -> None:
    Hosts(ServerSettings(host=listening)).check(header)


@pytest.mark.parametrize("header", THEIRS)
def test_other_names_are_refused_with_what_to_do(header: str) -> None:
    with pytest.raises(HostUnknown, match="`hosts`"):
        Hosts(ServerSettings()).check(header)


def test_names_that_its_owner_gave_it_are_its_own() -> None:
    hosts = Hosts(ServerSettings(public_url="https://Machines.example.org/below", hosts=("proxy.example.org",)))
    for header in ("machines.example.org", "machines.example.org:443", "proxy.example.org"):
        hosts.check(header)
    with pytest.raises(HostUnknown):
        hosts.check("other.example.org")


@pytest.mark.parametrize("listening", ["0.0.0.0", "::", "192.0.2.7", "machines.example.org"])
def test_a_server_that_others_reach_does_not_know_all_its_names(listening: str) -> None:
    Hosts(ServerSettings(host=listening)).check("whatever.example.org")
