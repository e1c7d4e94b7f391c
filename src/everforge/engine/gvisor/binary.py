"""The exact runsc that made a snapshot, kept beside it; and its fingerprint."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from everforge.engine.warden.commands import FLAGS
from everforge.wire.errors import EngineUnfit

ANSWER_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Binary:
    digest: str
    build: str  # binary, flags and processor: what a snapshot depends on besides its image
    direct: bool  # can write a checkpoint past the page cache


async def keep(runsc: Path, engines: Path) -> Binary:
    digest = await asyncio.to_thread(_keep, runsc, engines)
    kept = engines / digest / "runsc"
    features, options = await asyncio.gather(_ask(kept, "cpu-features"), _ask(kept, "help", "checkpoint"))
    build = hashlib.sha256("\n".join([digest, *FLAGS, *sorted(features.strip().split(","))]).encode()).hexdigest()
    return Binary(digest, build, "-direct" in options)


def _keep(runsc: Path, engines: Path) -> str:
    try:
        with open(runsc, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as e:
        raise EngineUnfit(f"there is no runsc at {runsc}: {e.strerror}") from e
    folder = engines / digest
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "runsc"
    if not kept.exists():
        partial = folder / f".partial-{secrets.token_hex(8)}"
        try:
            os.link(runsc, partial)
        except OSError:  # another disk, or another user's file
            shutil.copy2(runsc, partial)
        partial.rename(kept)
    return digest


async def _ask(binary: Path, *arguments: str) -> str:
    try:
        process = await asyncio.create_subprocess_exec(
            binary, *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
    except OSError as e:
        raise EngineUnfit(f"runsc cannot be run: {e}") from e
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return (await process.communicate())[0].decode(errors="replace")
    except TimeoutError:
        process.kill()
        await process.wait()
        raise EngineUnfit(f"`runsc {' '.join(arguments)}` did not end within {ANSWER_SECONDS:g} s") from None
