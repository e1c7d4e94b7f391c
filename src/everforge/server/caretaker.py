"""Waits for the next server of a data folder; if none comes in time, hibernates what the last one left awake.

Run as `python -m everforge.server.caretaker DATA SECONDS`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from everforge.wire.errors import DataFolderBusy


async def leave(data: Path, seconds: float) -> None:
    """Start one. In a session of its own, so that what stops the server does not stop it."""
    log = os.open(data / "caretaker.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        command = [sys.executable, "-m", __name__, str(data), str(seconds)]
        await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    finally:
        os.close(log)


async def take_care(data: Path, seconds: float) -> bool:
    """True when it was this caretaker who put the machines to sleep."""
    from .bootstrap import open_machines

    await asyncio.sleep(seconds)
    try:
        machines, folder = await open_machines(data, for_new_machines=False)
    except DataFolderBusy:
        return False  # the next server has come
    await machines.stop()
    folder.unlock()
    return True


if __name__ == "__main__":
    asyncio.run(take_care(Path(sys.argv[1]), float(sys.argv[2])))
