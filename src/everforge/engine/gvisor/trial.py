"""A live try of the engine: start, save, restore, destroy. A version string proves nothing."""

from __future__ import annotations

import asyncio
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from everforge.engine.base import Engine, Image, Limits, Link, Probe
from everforge.wire import frames
from everforge.wire.errors import EverforgeError, SandboxLost
from everforge.wire.messages import Attach, encode

ANSWER_SECONDS = 30.0
TRIAL = Limits(memory_mb=512, cpus=1.0, processes=64, disk_mb=256)


async def probe(engine: Engine, image: Image, snapshots: Path, facts: Mapping[str, str]) -> Probe:
    folder = snapshots / f".partial-probe-{secrets.token_hex(8)}"  # a name that the store's own cleaning knows, should we be killed here
    await asyncio.to_thread(folder.mkdir)
    try:
        await _try(engine, image, folder)
    except EverforgeError as e:
        remedy = "see `everforge doctor`; another runsc can be named with EVERFORGE_RUNSC"
        return Probe(engine.name, False, engine.build, f"gVisor does not work on this computer: {e.message}", facts, remedy)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    return Probe(engine.name, True, engine.build, "gVisor starts, saves, restores and destroys sandboxes", facts)


async def _try(engine: Engine, image: Image, folder: Path) -> None:
    first = await engine.start(image, TRIAL)
    try:
        await _answers(first.link)
        await first.save(folder)
        await _answers(first.link)
        second = await engine.restore(image, folder, TRIAL)
        try:
            await _answers(second.link)
        finally:
            await second.destroy()
    finally:
        await first.destroy()


async def _answers(link: Link) -> None:
    """The guest repeats the nonce of an attach; what else it says does not matter here."""
    nonce = secrets.token_bytes(frames.NONCE_BYTES)
    (record,) = frames.split(Attach.kind, encode(Attach(nonce=nonce.hex(), epoch=0, have=0)), 0, frames.RECORD_BYTES_MAX)
    seen = b""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await link.send(frames.encode_record(record))
            while frames.mark(nonce) not in seen:
                data = await link.receive()
                if not data:
                    raise SandboxLost("the guest ended")
                seen = (seen + data)[-frames.GUEST_RECORD_BYTES_MAX :]
    except TimeoutError:
        raise SandboxLost(f"the guest did not answer within {ANSWER_SECONDS:g} s") from None
