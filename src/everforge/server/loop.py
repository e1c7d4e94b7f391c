"""The event loop that a server runs on."""

from __future__ import annotations

import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")

# So many objects more than there were, before it is looked for cycles among them: reading one large message makes a hundred thousand that are none.
YOUNG_MAX = 20_000


def run(main: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, on a loop whose turns cost a fraction: a trivial instruction takes some ten of them."""
    gc.freeze()  # modules stay: looking through them again and again for garbage would stop the loop for tens of milliseconds each time
    gc.set_threshold(YOUNG_MAX)
    return uvloop.run(main)
