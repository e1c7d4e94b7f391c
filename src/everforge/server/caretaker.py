"""Waits for the next server of a data folder; if none comes in time, hibernates what the last one left awake, and tries again where it cannot.

Run as `python -m everforge.server.caretaker DATA SECONDS TOKEN`, with the settings as JSON on its standard input. The token is in the data folder for
as long as this is the caretaker that is wanted: the next server takes it away.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import logging
import os
import secrets
import sys
from pathlib import Path

from everforge.machines.settings import MachineSettings
from everforge.wire.errors import DataFolderBusy, EverforgeError

from . import loop
from .datafolder import DataFolder

log = logging.getLogger(__name__)

PAUSE_SECONDS_MAX = 60.0  # between tries: each stops the machines for a moment
LOG_BYTES_MAX = 1024 * 1024


async def leave(folder: DataFolder, settings: MachineSettings) -> None:
    """Start one. In a session of its own, so that what stops the server does not stop it."""
    token = secrets.token_hex(8)
    try:
        await asyncio.to_thread(folder.expect_caretaker, token)
        await _start(folder, settings, token)
    except OSError as e:
        log.error("no caretaker could be started (%s): the machines stay awake until the next server comes", e)


async def _start(folder: DataFolder, settings: MachineSettings, token: str) -> None:
    seconds = settings.handover_seconds or settings.save_retry_seconds
    told = os.open(folder.caretaker_log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        command = [sys.executable, "-m", __name__, str(folder.path), str(seconds), token]
        process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE, stdout=told, stderr=told, start_new_session=True)
        assert process.stdin is not None
        process.stdin.write(json.dumps(dataclasses.asdict(settings)).encode())
        await process.stdin.drain()
        process.stdin.close()
    finally:
        os.close(told)


def read_settings(text: str) -> MachineSettings:
    values = json.loads(text)
    return MachineSettings(**values | {"disk_classes_mb": tuple(values["disk_classes_mb"])})


async def take_care(data: Path, seconds: float, token: str, settings: MachineSettings) -> bool:
    """True when it was this caretaker who put the machines to sleep."""
    folder = DataFolder(data)
    pause = settings.save_retry_seconds
    await asyncio.sleep(seconds)
    while folder.awaits(token):  # if not, a server has come, and may have gone again and left another caretaker
        try:
            if await _put_to_sleep(data, token, settings):
                return True
        except DataFolderBusy:
            return False
        except EverforgeError as e:
            log.warning("the machines could not be put to sleep: %s", e.message)
        except Exception:  # nobody else is there to try again
            log.exception("the machines could not be put to sleep")
        log.warning("tried again in %g s", pause)
        await asyncio.sleep(pause)
        pause = min(2 * pause, PAUSE_SECONDS_MAX)
        _shorten_log()
    return False


def _shorten_log() -> None:
    """By our own descriptor: whoever makes room on the disk may have removed the file."""
    with contextlib.suppress(OSError):
        if os.fstat(sys.stderr.fileno()).st_size > LOG_BYTES_MAX:
            os.ftruncate(sys.stderr.fileno(), 0)


async def _put_to_sleep(data: Path, token: str, settings: MachineSettings) -> bool:
    """All of them."""
    from .bootstrap import open_machines

    machines, folder = await open_machines(data, settings, for_new_machines=False, caretaker_token=token)
    try:
        left = await machines.forge.stop()
        if not left:
            folder.caretaker.unlink(missing_ok=True)
    finally:
        folder.unlock()
    return not left


if __name__ == "__main__":
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING)
    loop.run(take_care(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3], read_settings(sys.stdin.read())))
