"""Names of machines, for those who type them: completion in the shell, and the near ones when one is mistyped. Neither may ever be in the way."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

COMPLETED_MAX = 200  # more than anybody reads
LOOKED_AT_MAX = 2000  # of the newest, for near names
NEAR_MAX = 3


def complete_names(incomplete: str) -> list[str]:
    """Of this server's machines; none when it does not say so at once."""
    from .quick import fetch

    try:
        page = fetch("/v1/machine/list", [("name_prefix", incomplete), ("limit", str(COMPLETED_MAX))])
        return [str(machine["name"]) for machine in page["machines"]]
    except Exception:  # whatever it is: a shell that completes nothing is better than one that prints a traceback
        return []


def near_names(name: str) -> str:
    """` ; did you mean ...?`, or nothing."""
    from everforge.wire.errors import EverforgeError

    from .connection import connected

    try:
        with connected() as server:
            known = [machine.name for machine in islice(server.machines(), LOOKED_AT_MAX)]
    except EverforgeError:
        return ""
    return suggestion(name, known)


def suggestion(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), n=NEAR_MAX, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else "; `everforge machine list` shows those there are"
