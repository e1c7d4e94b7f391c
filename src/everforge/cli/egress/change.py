"""`everforge egress allow`, `deny`, `set` and `default`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from ..options import Json, Name, among
from .show import told

if TYPE_CHECKING:
    from everforge.wire import api

Rules = Annotated[list[str], typer.Argument(metavar="HOST", help="example.com, *.example.com, example.com:8443, tcp://db.example.com:5432")]
Policy = Annotated[str, typer.Argument(help="none, list (what is allowed by name), packages (the package index), public")]


def allow(name: Name, hosts: Rules, json: Json = False) -> None:
    """Let a machine reach hosts, at once. They stay closed if they lie in a private network, unless the server's owner opened them.

    Example: everforge egress allow first api.example.com '*.example.org'
    """
    from ..connection import machine_named

    with machine_named(name) as machine:
        told(machine.egress.allow(*hosts), json=json)


def deny(name: Name, hosts: Rules, json: Json = False) -> None:
    """Take hosts away that were allowed.

    Example: everforge egress deny first api.example.com
    """
    from ..connection import machine_named

    with machine_named(name) as machine:
        told(machine.egress.deny(*hosts), json=json)


def set_(name: Name, policy: Policy, json: Json = False) -> None:
    """Choose what a machine may reach. It counts at once: connections that it does not allow are cut. `none` drops its rules.

    Example: everforge egress set first none
    """
    from ..connection import machine_named

    known = _policy(policy)
    with machine_named(name) as machine:
        before = machine.egress.show().egress_allow
        now = machine.egress.set(known)
    told(now, json=json)
    dropped = [rule for rule in before if rule not in now.egress_allow]
    if dropped and not json:
        from ..failures import say

        say(f"everforge: {len(dropped)} rule{'s' * (len(dropped) > 1)} dropped: {' '.join(dropped)}")


def default(
    policy: Annotated[str | None, typer.Argument(help="none, list, packages, public. [default: the server's own]")] = None,
    allow: Annotated[list[str] | None, typer.Option(metavar="HOST", help="A host that they may reach as well. Repeatable.")] = None,
    json: Json = False,
) -> None:
    """Choose what new machines of the account may reach. Those that are there stay as they are.

    Example: everforge egress default packages --allow api.example.com
    """
    from ..connection import connected

    known = None if policy is None else _policy(policy)
    with connected() as server:
        told(server.egress.set(known, allow=allow), json=json)


def _policy(word: str) -> api.Egress:
    from everforge.wire import api

    among(api.Egress, "POLICY", [word])
    return cast("api.Egress", word)
