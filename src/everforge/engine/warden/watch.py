"""What must be looked at again and again: memory where there are no control groups, and the size of logs."""

from __future__ import annotations

import asyncio
import contextlib
import os

from . import bundle
from .sandboxes import Sandboxes

MEMORY_SECONDS = 0.25  # a guest fills some 500 MB in that time: without control groups the limit is not sharper than that
SLOW_SECONDS = 10.0
LOG_BYTES_MAX = 1024 * 1024  # of one sandbox; runsc appends, so a cut log goes on at its start


async def watch_memory(sandboxes: Sandboxes) -> None:
    while True:
        await asyncio.sleep(MEMORY_SECONDS)
        for held in sandboxes.all():
            if held.sentry is not None and sandboxes.usage_bytes(held) > bundle.memory_bytes(held.memory_mb):
                sandboxes.kill_over_memory(held)


async def watch_slowly(sandboxes: Sandboxes) -> None:
    while True:
        await asyncio.sleep(SLOW_SECONDS)
        for held in sandboxes.all():
            sandboxes.note_memory_kills(held)
            if held.runsc.log_size() > LOG_BYTES_MAX:
                with contextlib.suppress(OSError):
                    os.truncate(held.runsc.log, 0)
