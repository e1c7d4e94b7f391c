"""Reading every byte of an image again, in a process that yields to everything else: `python -m everforge.images.scrub IMAGES DIGEST SERVER_PID`.

What it finds is noted beside the image, so that the next server refuses it too. The note goes with the image, or when a later look finds it whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import logging
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

from everforge.folders import cache_folder
from everforge.wire.errors import EverforgeError, ImageDamaged, ImageNotFound, Uncertain

from .catalogue import Catalogue, CataloguedImage

log = logging.getLogger(__name__)

SCRUB_SECONDS = 3600.0  # seconds on an idle computer; on one where machines are busy it gets what they leave
END_SECONDS = 5.0
PR_SET_PDEATHSIG = 1


class WatchedImages:
    """The images of a catalogue, less those that were found to be damaged."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        # When it was built, and what was found: the note may be impossible to write.
        self._damaged: dict[str, tuple[str, str]] = {}

    def find(self, name_or_digest: str) -> CataloguedImage:
        """As the catalogue does. Raises ImageDamaged also for what could not be noted there."""
        image = self._catalogue.find(name_or_digest)
        created_at, told = self._damaged.get(image.digest, ("", ""))
        if told and created_at == image.created_at:
            raise ImageDamaged(told, digest=image.digest)
        return image

    async def scrub(self, digest: str) -> None:
        """Raises ImageDamaged, ImageNotFound; and Uncertain when it could not be looked at. Cancelled, it ends at once."""
        before = await asyncio.to_thread(self._image, digest)
        told = await _look_apart(self._catalogue.images, digest)
        if before is None or before != await asyncio.to_thread(self._image, digest):
            return  # deleted meanwhile, and perhaps built again: what was seen is not of the one that is there now
        await asyncio.to_thread(self._note, before, told)
        if told:
            raise ImageDamaged(told, digest=digest)

    def _image(self, digest: str) -> CataloguedImage | None:
        return next((image for image in self._catalogue.list() if image.digest == digest), None)

    def _note(self, image: CataloguedImage, told: str) -> None:
        self._damaged[image.digest] = (image.created_at, told)
        try:
            self._catalogue.note_damage(image, told)
        except OSError as error:
            log.warning("the state of image %s could not be noted for the next server: %s", image.digest[:12], error)


async def _look_apart(images: Path, digest: str) -> str:
    """What is wrong with it, or nothing. Raises ImageNotFound, Uncertain."""
    # In a session of its own: Ctrl-C is for the server, which ends it in order.
    command = [sys.executable, "-P", "-m", __name__, str(images), digest, str(os.getpid())]
    process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=PIPE, start_new_session=True)
    try:
        async with asyncio.timeout(SCRUB_SECONDS):
            said, _ = await process.communicate()
        answer = json.loads(said)
    except (TimeoutError, ValueError) as error:
        raise Uncertain(f"the image {digest[:12]} could not be looked at: {error!r}", position=None) from error
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), END_SECONDS)
    if missing := answer.get("missing"):
        raise ImageNotFound(missing)
    return str(answer.get("damaged", ""))


# --- the process -------------------------------------------------------------------------------------------------------------------------


def _look(images: Path, digest: str) -> dict[str, str]:
    try:
        Catalogue(images, cache_folder()).scrub(digest)
    except ImageDamaged as error:
        return {"damaged": error.message}
    except EverforgeError as error:
        return {"missing": error.message}
    return {}


def main() -> None:
    images, digest, server = sys.argv[1:]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(server):
        return  # the server was gone before we asked to die with it
    os.nice(19)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # only what nobody else wants of the processors
    print(json.dumps(_look(Path(images), digest)), flush=True)


if __name__ == "__main__":
    main()
