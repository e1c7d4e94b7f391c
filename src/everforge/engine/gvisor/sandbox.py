"""A gVisor sandbox as the server sees it: descriptors of its own, and a warden to ask for the rest."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

from everforge.engine.base import Ending, How
from everforge.engine.link import PipeLink
from everforge.engine.warden import verbs
from everforge.wire.errors import SandboxLost, SaveFailed
from everforge.wire.ids import SandboxId

from .binaries import Binary
from .client import Client, WardenGone


class GvisorSandbox:
    """Keeps its descriptors until it ends, also while no link is open: they are what a new warden needs to adopt it."""

    def __init__(self, client: Client, id: SandboxId, descriptors: list[int], binary: Binary, *, memory_mb: int, pooled: bool) -> None:
        self._client = client
        self._id = id
        self._to_guest, self._from_guest, self._egress = descriptors
        self.binary = binary
        self.memory_mb = memory_mb
        self.pooled = pooled
        self.empty = False  # made ahead, and nothing has been restored into it yet
        self._link: PipeLink | None = None
        self._ending: Ending | None = None
        self._over = asyncio.Event()

    @property
    def id(self) -> SandboxId:
        return self._id

    @property
    def build(self) -> str:
        return self.binary.build

    @property
    def descriptors(self) -> list[int]:
        return [self._to_guest, self._from_guest, self._egress]

    @property
    def link(self) -> PipeLink:
        if self._link is None or (self._link.is_closed and self._to_guest >= 0):
            self._link = PipeLink(os.dup(self._from_guest), os.dup(self._to_guest))
        return self._link

    def egress(self) -> socket.socket | None:
        return None if self._egress < 0 else socket.socket(fileno=os.dup(self._egress))

    @property
    def is_over(self) -> bool:
        return self._ending is not None

    async def save(self, folder: Path) -> None:
        try:
            await self._client.ask(self._save_verb(folder))
        except WardenGone as e:
            raise SaveFailed(f"the warden ended while sandbox {self._id} was saved; the sandbox goes on") from e
        except SandboxLost as e:
            raise SaveFailed(f"sandbox {self._id} could not be saved: {e.message}") from e

    def _save_verb(self, folder: Path) -> verbs.Save:
        return verbs.Save(id=self._id, folder=str(folder.absolute()), direct=self.binary.direct)

    async def destroy(self) -> None:
        if not self.is_over:
            # Not to be left half done by a caller that gives up.
            await asyncio.shield(asyncio.ensure_future(self._destroy()))
        if self._link is not None:
            self._link.close()

    async def _destroy(self) -> None:
        await self._client.ask(verbs.Destroy(id=self._id))
        self.end(Ending(How.DESTROYED))

    async def ended(self) -> Ending:
        await self._over.wait()
        assert self._ending is not None
        return self._ending

    async def memory_bytes(self) -> int:
        answer, _ = await self._client.ask(verbs.Usage(id=self._id))
        return int(answer["bytes"])

    def end(self, ending: Ending) -> None:
        """The first one told counts. The link stays open for what is still in the pipe."""
        if self._ending is None:
            self._ending = ending
            self._over.set()
            self.let_go()

    def let_go(self) -> None:
        """Close our own descriptors; the sandbox, if it lives, goes on."""
        if self._to_guest >= 0:
            if self._link is None and self.is_over and not self.pooled:
                self._link = PipeLink(os.dup(self._from_guest), os.dup(self._to_guest))
            for number in self.descriptors:
                os.close(number)
            self._to_guest = self._from_guest = self._egress = -1
