"""The server's side of the packing process: started when there is something to pack, one job at a time, gone with the server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from asyncio.subprocess import PIPE, Process
from typing import Protocol

from .packing import Job, encode

log = logging.getLogger(__name__)

JOB_SECONDS = 900.0  # 8 GB on a slow and busy disk
END_SECONDS = 5.0


class Packer(Protocol):
    async def do(self, job: Job) -> bool:
        """Whether it was done. If not, the log says why, and the snapshot is as it was."""
        ...

    async def close(self) -> None: ...


class PackerProcess:
    def __init__(self) -> None:
        self._process: Process | None = None
        self._one = asyncio.Lock()

    async def do(self, job: Job) -> bool:
        async with self._one:
            try:
                async with asyncio.timeout(JOB_SECONDS):
                    error = await self._ask(job)
            except (OSError, ValueError, TimeoutError) as e:
                await self._end()
                error = f"the packer was lost: {e!r}"
            except asyncio.CancelledError:
                await self._end()  # killed at any step, it leaves the snapshot whole or packed
                raise
            if error:
                log.warning("%s is not packed yet: %s", job.snapshot or job.machine, error)
            return not error

    async def close(self) -> None:
        async with self._one:
            await self._end()

    async def _ask(self, job: Job) -> str | None:
        process = self._process
        if process is None or process.returncode is not None:
            process = self._process = await _start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(encode(job))
        await process.stdin.drain()
        return json.loads(await process.stdout.readline()).get("error")

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), END_SECONDS)


async def _start() -> Process:
    # In a session of its own: Ctrl-C is for the server, which ends it in order.
    command = [sys.executable, "-P", "-m", "everforge.store.packs.packing", str(os.getpid())]
    return await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, start_new_session=True)
