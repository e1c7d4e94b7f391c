"""Looks now and then at every byte of the images that machines here were born in, behind everything else.

A file of an image that changed on the disk would come back with the next machine that wakes, and nobody would know. What is found is said in the log;
machines of that image are not woken any more, and those that are awake go on.
"""

from __future__ import annotations

import asyncio
import logging

from everforge.store.base import Store
from everforge.wire.errors import EverforgeError, ImageDamaged

from .settings import MachineSettings
from .templates import KnownImages

log = logging.getLogger(__name__)


class ImageScrub:
    def __init__(self, store: Store, images: KnownImages, settings: MachineSettings) -> None:
        self._store = store
        self._images = images
        self._settings = settings
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        if self._settings.image_scrub_hours > 0:
            self._task = asyncio.get_running_loop().create_task(self._work(), name="scrub images")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        pause_seconds = self._settings.image_scrub_first_seconds
        while True:
            await asyncio.sleep(pause_seconds)
            try:
                for digest in sorted(await self._store.images_in_use()):
                    await self._scrub(digest)
            except Exception:
                log.exception("the images could not be looked at; tried again later")
            pause_seconds = self._settings.image_scrub_hours * 3600

    async def _scrub(self, digest: str) -> None:
        try:
            await self._images.scrub(digest)
        except ImageDamaged as e:
            log.error("%s. Machines of this image are not woken until then; those that are awake go on", e.message)
        except EverforgeError as e:
            log.warning("image %s could not be checked: %s", digest[:12], e.message)
