"""Waits for the next server of a data folder; if none comes in time, hibernates what the last one left awake.

Run as `python -m everforge.server.caretaker DATA SECONDS TOKEN`, with the settings as JSON on its standard input. The token is in the data folder for
as long as this is the caretaker that is wanted: the next server takes it away.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import secrets
import sys
from pathlib import Path

from everforge.machines.settings import MachineSettings
from everforge.wire.errors import DataFolderBusy

from . import loop
from .datafolder import DataFolder


async def leave(folder: DataFolder, settings: MachineSettings) -> None:
    """Start one. In a session of its own, so that what stops the server does not stop it."""
    token = secrets.token_hex(8)
    await asyncio.to_thread(folder.caretaker.write_text, token)
    log = os.open(folder.path / "caretaker.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        command = [sys.executable, "-m", __name__, str(folder.path), str(settings.handover_seconds), token]
        process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE, stdout=log, stderr=log, start_new_session=True)
        assert process.stdin is not None
        process.stdin.write(json.dumps(dataclasses.asdict(settings)).encode())
        await process.stdin.drain()
        process.stdin.close()
    finally:
        os.close(log)


def read_settings(text: str) -> MachineSettings:
    values = json.loads(text)
    return MachineSettings(**values | {"disk_classes_mb": tuple(values["disk_classes_mb"])})


async def take_care(data: Path, seconds: float, token: str, settings: MachineSettings) -> bool:
    """True when it was this caretaker who put the machines to sleep."""
    from .bootstrap import open_machines

    await asyncio.sleep(seconds)
    if not DataFolder(data).awaits(token):
        return False  # a server has come, and may have gone again and left another caretaker
    try:
        machines, folder = await open_machines(data, settings, for_new_machines=False)
    except DataFolderBusy:
        return False
    await machines.stop()
    folder.unlock()
    return True


if __name__ == "__main__":
    loop.run(take_care(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3], read_settings(sys.stdin.read())))
