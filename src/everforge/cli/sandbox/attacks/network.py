"""Can it reach my network?"""

from __future__ import annotations

import socket
from typing import Any

from ..attack import Attack, Group, Outcome, Seen, all_refused, broken, held, not_made
from ..bait import Bait
from ..inside import attempt, heard, read


def this_computer(bait: dict[str, Any]) -> dict[str, Any]:
    return {"answers": [heard(one if isinstance(one, str) else (one[0], one[1])) for one in bait["listeners"]]}


def own_server(bait: dict[str, Any]) -> dict[str, Any]:
    host, port = bait["server"]
    return {"why": heard((host, port))["why"]}


def another_machine(bait: dict[str, Any]) -> dict[str, Any]:
    return {"answers": [heard((host, port)) for host, port in bait["neighbour"]]}


def cards(bait: dict[str, Any]) -> dict[str, Any]:
    return {"cards": [name for _, name in socket.if_nameindex()], "routes": read("/proc/net/route").splitlines()[1:]}


def listening_in(bait: dict[str, Any]) -> dict[str, Any]:
    kinds = {
        "all traffic": (socket.AF_PACKET, socket.SOCK_RAW, 0),
        "IPv4 packets": (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
        "IPv6 packets": (socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6),
    }
    return {name: attempt(lambda kind=kind: socket.socket(*kind).close()) for name, kind in kinds.items()}


def outside_world(bait: dict[str, Any]) -> dict[str, Any]:
    addresses = {"the service that hands out a cloud computer's keys": "169.254.169.254", "a home router": "192.168.1.1", "the internet": "192.0.2.1"}
    return {name: heard((address, 80), 1.0)["why"] for name, address in addresses.items()}


def through_the_door(bait: dict[str, Any]) -> dict[str, Any]:
    """Asks the door for places that no policy opens: this computer in every spelling, and a cloud's key service. Refused before anybody connects.
    The machine's policy allows them as far as a policy can, so that it is not the policy that refuses them."""
    places = [f"{one[0]}:{one[1]}" for one in bait["listeners"] if not isinstance(one, str)]
    port = places[0].rpartition(":")[2] if places else "80"
    spellings = ("localhost", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0")
    places += [f"{name}:{port}" for name in spellings] + ["169.254.169.254:80", "[fd00:ec2::254]:80"]
    found: dict[str, Any] = {}
    for place in places:
        try:
            with socket.create_connection(tuple(bait["door"]), 5) as door:
                door.sendall(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
                found[place] = door.recv(4096).decode("utf-8", "replace").split("\r\n")[0][:300] or "closed"
                if " 200 " in f"{found[place]} ":
                    found[place] += " " + door.recv(200).decode("utf-8", "replace")
        except OSError as e:
            found[place] = str(e)
    return found


def names(bait: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"found": [str(one[4][0]) for one in socket.getaddrinfo("example.com", 80)]}
    except OSError as e:
        return {"found": [], "why": str(e)}


def nobody_came(seen: Seen, bait: Bait) -> Outcome:
    """The listeners on this side know best."""
    if bait.came or bait.seen_in(seen.fact):
        return broken("It connected to a program on your computer.")
    return held(f"Nobody came to the {len(bait.listeners)} places where your computer waited.")


def server_judge(seen: Seen, bait: Bait) -> Outcome:
    return broken("It reached the server that runs it.") if seen.text("why") == "done" else held("It cannot be reached from in there.")


def neighbour_judge(seen: Seen, bait: Bait) -> Outcome:
    if bait.seen_in(seen.fact):
        return broken("It heard what the other machine said.")
    return held("The other machine waited for it, and heard nothing.")


def cards_judge(seen: Seen, bait: Bait) -> Outcome:
    if seen.texts("cards") == ["lo"] and not seen.texts("routes"):
        return held("There is none: it can only talk to itself.")
    return broken(f"It has {', '.join(seen.texts('cards'))} and {len(seen.texts('routes'))} ways out.")


def world_judge(seen: Seen, bait: Bait) -> Outcome:
    reached = [name for name, why in seen.fact.items() if why in ("done", "ECONNREFUSED")]  # a refusal comes from somebody
    return broken(f"It reached {', '.join(reached)}.") if reached else held("None of them can be reached.")


def door_judge(seen: Seen, bait: Bait) -> Outcome:
    opened = [place for place in seen.fact if _status(seen.text(place)).startswith("2")]
    if bait.came or opened or bait.seen_in(seen.fact):
        return broken(f"The door opened: {', '.join(opened) or 'somebody came through'}.")
    unsaid = {place: seen.text(place) for place in seen.fact if _status(seen.text(place)) != "403"}
    if unsaid:
        place, said = next(iter(unsaid.items()))
        return not_made(f"Not known: for {len(unsaid)} of {len(seen.fact)} no refusal came from the door (for {place}: {said}).")
    if not bait.open_policy:
        return held(f"The door refused all {len(seen.fact)}, and nobody came. (By this server's policy: it lets no machine ask for more.)")
    return held(f"The door refused all {len(seen.fact)}, though the machine's policy allows the whole web, and nobody came.")


def _status(line: str) -> str:
    """Of a line with which an answer in HTTP begins; empty for anything else."""
    words = line.split(" ")
    return words[1] if len(words) > 1 and words[0] in ("HTTP/1.1", "HTTP/1.0") and len(words[1]) == 3 else ""


def names_judge(seen: Seen, bait: Bait) -> Outcome:
    return broken(f"It was told: {', '.join(seen.texts('found'))}.") if seen.texts("found") else held("There is nobody whom it could ask.")


GROUP = Group(
    "Can it reach my network?",
    "No. It has no network card; what it may fetch goes through a door outside, by rules.",
    (
        Attack("this-computer", "Connect to programs on your computer that wait for anybody", this_computer, nobody_came),
        Attack("own-server", "Connect to the server that runs it, to command it", own_server, server_judge),
        Attack("another-machine", "Connect to another machine on this server", another_machine, neighbour_judge),
        Attack("network-cards", "Find a network card and a way out", cards, cards_judge),
        Attack("raw-packets", "Listen in on your network, or make up packets", listening_in, all_refused("it gets no such socket")),
        Attack("other-addresses", "Connect past the door: to a router, the internet, a cloud's key service", outside_world, world_judge, local=False),
        Attack("door", "Ask the door to the outside for your own computer, in every spelling, and for a cloud's keys", through_the_door, door_judge),
        Attack("names", "Ask for the address of a web site", names, names_judge, local=False),
    ),
)
