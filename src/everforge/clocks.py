"""The time of day as if nobody had set the clock since this server began: for what must be neither forgotten nor
put off because somebody did, as keys, points and the next tries of webhooks.

What lies further back than the server's start is known by the clock alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable


def steady_clock() -> Callable[[], float]:
    began = time.time() - time.monotonic()
    return lambda: began + time.monotonic()
