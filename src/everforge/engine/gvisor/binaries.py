"""The exact runsc that made a snapshot, kept beside it: what it saved, no other build can restore.

So an upgrade leaves sleeping machines alone. They go on in the build they were born in, and new ones start in the new one.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from everforge.engine.warden.commands import FLAGS
from everforge.engine.warden.verbs import DIGEST
from everforge.folders import cache_folder
from everforge.wire.errors import EngineUnfit, WakeFailed

log = logging.getLogger(__name__)

ANSWER_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Binary:
    digest: str
    build: str  # binary, flags and processor: what a snapshot depends on besides its image
    direct: bool  # can write a checkpoint past the page cache


class Binaries:
    """Those of one data folder: the present one, for everything new, and older ones for what they saved."""

    def __init__(self, engines: Path, present: Binary) -> None:
        self.present = present
        self._engines = engines
        self._known = {present.digest: present}  # older ones are looked for when first asked for: most servers never are
        self._looking = asyncio.Lock()

    @classmethod
    async def open(cls, engines: Path, runsc: Path) -> Binaries:
        """Keeps this runsc there, if it is not yet. Raises EngineUnfit."""
        return cls(engines, await _examine(engines, await asyncio.to_thread(_keep, runsc, engines)))

    async def of_build(self, build: str) -> Binary | None:
        """None: it is not kept here, or not whole. Raises WakeFailed when that could not be found out."""
        if build == self.present.build:
            return self.present
        trouble = await self._look_for_older()
        found = next((binary for binary in self._known.values() if binary.build == build), None)
        if found is None and trouble is not None:
            raise WakeFailed(f"whether the runsc that this needs is here could not be found out: {trouble.message}") from trouble
        return found

    async def of_digest(self, digest: str) -> Binary:
        """Of a sandbox that lives. If its runsc is gone, it can no longer be saved, and its build does not matter."""
        if digest != self.present.digest:
            await self._look_for_older()
        return self._known.get(digest, Binary(digest, digest, direct=False))

    async def _look_for_older(self) -> EngineUnfit | None:
        """Returns what went wrong with the last one that could not be asked; they are asked again the next time."""
        trouble: EngineUnfit | None = None
        async with self._looking:
            for digest in await asyncio.to_thread(_digests, self._engines):
                try:
                    if digest not in self._known and await asyncio.to_thread(_is_whole, self._engines / digest / "runsc", digest):
                        self._known[digest] = await _examine(self._engines, digest)
                except EngineUnfit as e:
                    log.warning("an older runsc cannot be used now: %s", e.message)
                    trouble = e
        return trouble


async def _examine(engines: Path, digest: str) -> Binary:
    kept = engines / digest / "runsc"
    features, options = await asyncio.gather(_ask(kept, "cpu-features"), _ask(kept, "help", "checkpoint", stderr=asyncio.subprocess.STDOUT))
    build = hashlib.sha256("\n".join([digest, *FLAGS, *sorted(features.strip().split(","))]).encode()).hexdigest()
    return Binary(digest, build, "-direct" in options)


def _digests(engines: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in engines.iterdir() if DIGEST.fullmatch(entry.name))
    except OSError:
        return []


def _is_whole(runsc: Path, digest: str) -> bool:
    if not runsc.exists():
        return False
    if _digest(runsc) != digest:
        log.warning("the runsc kept as %s is damaged: what it saved cannot be restored", digest)
        return False
    return True


def _keep(runsc: Path, engines: Path) -> str:
    """Its digest; it is there, whole and durable, when this returns."""
    digest = _digest(runsc)
    kept = engines / digest / "runsc"
    try:
        if not kept.exists() or (not kept.samefile(runsc) and _digest(kept) != digest):
            _put(runsc, kept)
    except OSError as e:
        raise EngineUnfit(f"runsc could not be kept in {kept.parent}: {e.strerror or e}") from e
    return digest


def _put(runsc: Path, kept: Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    partial = kept.parent / f".partial-{secrets.token_hex(8)}"
    try:
        if not (runsc.is_relative_to(cache_folder()) and _linked(runsc, partial)):
            shutil.copy2(runsc, partial)
        _sync(partial)
        partial.rename(kept)
    finally:
        partial.unlink(missing_ok=True)
    _sync(kept.parent)
    _sync(kept.parent.parent)


def _linked(runsc: Path, partial: Path) -> bool:
    """Only for the one that we built, and replace by renaming: into somebody else's file a later build may be written."""
    try:
        os.link(runsc, partial)
    except OSError:  # another disk, or another user's file
        return False
    return True


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _digest(runsc: Path) -> str:
    try:
        with open(runsc, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as e:
        raise EngineUnfit(f"the runsc at {runsc} cannot be read: {e.strerror}") from e


async def _ask(binary: Path, *arguments: str, stderr: int = asyncio.subprocess.DEVNULL) -> str:
    """Without an environment: nothing of it is to make another build of the same program."""
    try:
        process = await asyncio.create_subprocess_exec(
            binary, *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=stderr, env={}
        )
    except OSError as e:
        raise EngineUnfit(f"runsc cannot be run: {e}") from e
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            told = (await process.communicate())[0].decode(errors="replace")
    except TimeoutError:
        process.kill()
        await process.wait()
        raise EngineUnfit(f"`runsc {' '.join(arguments)}` did not end within {ANSWER_SECONDS:g} s") from None
    if process.returncode != 0:
        raise EngineUnfit(f"`runsc {' '.join(arguments)}` ended with status {process.returncode}: {told.strip()[-200:]}")
    return told
