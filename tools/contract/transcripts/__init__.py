"""What is said between a client and a server, in every case that an SDK must get right: made with the wire's own types and the server's own spelling
of them, so that a change of either changes these."""

from __future__ import annotations

import json

from . import account, files, instructions, refusals, repls, requests  # each adds its own
from .words import made

PARTS = (requests, instructions, refusals, files, repls, account)


def texts() -> dict[str, str]:
    return {f"{name}.json": json.dumps(make(), indent=1) + "\n" for name, make in made.items()}
