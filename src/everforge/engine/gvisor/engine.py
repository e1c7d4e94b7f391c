"""The gVisor engine."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any

from everforge.engine.base import Ending, How, Image, Limits, Probe
from everforge.engine.warden import folders, verbs
from everforge.wire.errors import EverforgeError, SandboxLost, StartFailed, WakeFailed
from everforge.wire.ids import SandboxId, new_sandbox_id

from . import trial
from .binaries import Binaries, Binary
from .client import Client, Places, WardenGone
from .pools import Kind, Pool, PoolSettings
from .sandbox import GvisorSandbox

LINGER_SECONDS = 30.0  # a warden with nothing to hold waits so long for a server that is being restarted
EARLY_MAX = 256


class Gvisor:
    """Sandboxes of one data folder. Made by `open`, which finds or starts the warden."""

    name = "gvisor"

    def __init__(self, places: Places, binaries: Binaries, pool: PoolSettings) -> None:
        self._places = places
        self._binaries = binaries
        self._settings = pool
        self._sandboxes: dict[str, GvisorSandbox] = {}
        self._client = Client(places, self._told_ended, self._hand_over, self._lose_all)
        self._empty = Pool()
        self._ready = Pool(shelves_max=16)
        self._tasks: set[asyncio.Task[Any]] = set()
        # Told before the asker of the sandbox had its turn: both may come in one read.
        self._early: OrderedDict[str, tuple[str, str]] = OrderedDict()

    @classmethod
    async def open(
        cls,
        data: Path,
        runsc: Path,
        images: Path,
        *,
        snapshots: Path | None = None,
        pool: PoolSettings | None = None,
        linger_seconds: float = LINGER_SECONDS,
    ) -> Gvisor:
        """`images` is the folder below which every image lies, `snapshots` (DATA/snapshots) the one for saved sandboxes.

        Raises EngineUnfit, and DataFolderBusy when another server holds the sandboxes.
        """
        found = folders.find(data)
        await asyncio.to_thread(folders.make, found)
        places = await asyncio.to_thread(_places, found, images, snapshots or found.data / "snapshots", linger_seconds)
        engine = cls(places, await Binaries.open(found.engines, runsc), pool or PoolSettings())
        await engine._begin()
        return engine

    async def _begin(self) -> None:
        try:
            await self._client.open()
            await self._find_survivors()
            await self._client.ask(verbs.Sweep())
        except BaseException:
            await self._client.close()
            raise
        self._empty.begin()
        self._ready.begin()

    @property
    def build(self) -> str:
        return self._binaries.present.build

    async def knows(self, build: str) -> bool:
        return await self._binaries.of_build(build) is not None

    @property
    def warden_pid(self) -> int:
        return self._client.pid

    async def probe(self, image: Image) -> Probe:
        return await trial.probe(self, image, self._places.snapshots, self._client.facts)

    # --- sandboxes ---------------------------------------------------------------------------------------------------------------------

    async def start(self, image: Image, limits: Limits) -> GvisorSandbox:
        id = new_sandbox_id()
        try:
            return await self._new(verbs.Start(**self._fields(id, image, limits)))
        except SandboxLost as e:
            raise StartFailed(f"a sandbox could not be started: {e.message}") from e

    async def restore(self, image: Image, folder: Path, limits: Limits, build: str | None = None) -> GvisorSandbox:
        binary = self._binaries.present if build is None else await self._binaries.of_build(build)
        if binary is None:
            raise WakeFailed(f"the runsc that saved {folder.name} is not kept here")
        try:
            if binary != self._binaries.present:  # nothing is made ahead for these
                return await self._new(verbs.Restore(**self._fields(new_sandbox_id(), image, limits, binary), folder=_absolute(folder)), binary)
            return await self._restore(image, folder, limits)
        except SandboxLost as e:
            raise WakeFailed(f"a sandbox could not be restored: {e.message}") from e

    async def _restore(self, image: Image, folder: Path, limits: Limits) -> GvisorSandbox:
        ready = self._ready.take(_template_key(image, folder, limits))
        if ready is not None:
            try:
                return await self._claim(ready, limits)
            except EverforgeError:
                self._own(ready.destroy())  # it ended, or is too large for these limits: restored anew below
            except BaseException:
                self._own(ready.destroy())  # nobody waits for it any more, and it may be claimed all the same
                raise
        return await self._restore_now(image, folder, limits)

    async def _restore_now(self, image: Image, folder: Path, limits: Limits, *, pooled: bool = False) -> GvisorSandbox:
        empty = self._empty.take(Kind.of(image, limits))
        id = empty.id if empty is not None else new_sandbox_id()
        try:
            verb = verbs.Restore(**self._fields(id, image, limits), pooled=pooled, folder=_absolute(folder))
            return await self._fill(empty, verb) if empty is not None else await self._new(verb)
        finally:
            if not pooled:
                self._want_empty(image, limits)

    async def _claim(self, sandbox: GvisorSandbox, limits: Limits) -> GvisorSandbox:
        verb = verbs.Claim(id=sandbox.id, memory_mb=limits.memory_mb, cpus=float(limits.cpus), processes=limits.processes)
        await self._client.ask(verb)
        if sandbox.is_over:  # told in the same read
            raise SandboxLost(f"sandbox {sandbox.id} ended while it was claimed")
        sandbox.pooled, sandbox.memory_mb = False, limits.memory_mb
        return sandbox

    async def _fill(self, empty: GvisorSandbox, verb: verbs.Restore) -> GvisorSandbox:
        try:
            _, descriptors = await self._client.ask(verb)
            for number in descriptors:  # the same pipes that it was created with
                os.close(number)
            if empty.is_over:
                raise SandboxLost(f"sandbox {empty.id} ended as soon as it was restored")
        except BaseException:
            # Also when it is over: it ended with its warden, and the next one may have restored another under its id, which nobody holds.
            self._own(self._client.ask(verbs.Destroy(id=empty.id)))
            raise
        empty.empty, empty.pooled, empty.memory_mb = False, verb.pooled, verb.memory_mb
        return empty

    async def _new(self, verb: verbs.New, binary: Binary | None = None) -> GvisorSandbox:
        try:
            _, descriptors = await self._client.ask(verb)
        except asyncio.CancelledError:
            self._own(self._client.ask(verbs.Destroy(id=verb.id)))  # it comes up all the same, and nobody would want it
            raise
        sandbox = self._take(verb.id, descriptors, binary or self._binaries.present, memory_mb=verb.memory_mb, pooled=verb.pooled)
        sandbox.empty = isinstance(verb, verbs.Create)
        return sandbox

    def _take(self, id: str, descriptors: list[int], binary: Binary, *, memory_mb: int, pooled: bool) -> GvisorSandbox:
        sandbox = GvisorSandbox(self._client, SandboxId(id), descriptors, binary, memory_mb=memory_mb, pooled=pooled)
        self._sandboxes[id] = sandbox
        early = self._early.pop(id, None)
        if early is not None:
            self._told_ended(id, *early)
        return sandbox

    def _fields(self, id: str, image: Image, limits: Limits, binary: Binary | None = None) -> dict[str, Any]:
        return {
            "id": id,
            "engine": (binary or self._binaries.present).digest,
            "image": str(image.root.resolve()),
            "memory_mb": limits.memory_mb,
            "cpus": float(limits.cpus),
            "processes": limits.processes,
            "disk_mb": limits.disk_mb,
        }

    # --- made ahead --------------------------------------------------------------------------------------------------------------------

    def _want_empty(self, image: Image, limits: Limits) -> None:
        if self._settings.empty > 0:

            async def make() -> GvisorSandbox:
                return await self._new(verbs.Create(**self._fields(new_sandbox_id(), image, limits), pooled=True))

            self._empty.want(Kind.of(image, limits), self._settings.empty, make)

    async def keep_ready(self, image: Image, folder: Path, limits: Limits, count: int) -> None:
        """Keep so many sandboxes restored from this folder: `restore` of the same folder hands one out at once. 0 gives them up.

        Empty ones of the same kind are kept from now on too: those who start from this folder come back from others later.
        """
        key = _template_key(image, folder, limits)
        if count <= 0:
            await self._ready.drop(key)
            return

        async def make() -> GvisorSandbox:
            return await self._restore_now(image, folder, limits, pooled=True)

        self._ready.want(key, count, make)
        self._want_empty(image, limits)

    async def pools_filled(self) -> None:
        """Returns when everything wanted ahead is there, or was given up on: for whoever measures, and must not measure the filling too."""
        await asyncio.gather(self._empty.filled(), self._ready.filled())

    async def give_up_pools(self) -> None:
        """Destroy what waits, when its memory is needed. A later `restore` or `keep_ready` begins anew."""
        await asyncio.gather(self._empty.clear(), self._ready.clear())

    # --- survivors, endings, a new warden ----------------------------------------------------------------------------------------------

    async def survivors(self) -> Mapping[SandboxId, GvisorSandbox]:
        return {sandbox.id: sandbox for sandbox in self._sandboxes.values() if not sandbox.pooled and not sandbox.is_over}

    async def _find_survivors(self) -> None:
        after, more = "", True
        while more:
            page, _ = await self._client.ask(verbs.List(after=after))
            more = bool(page["more"])
            for found in page["sandboxes"]:
                after = str(found["id"])
                if found["pooled"] or found["state"] != "running":
                    await self._client.ask(verbs.Destroy(id=after))
                    continue
                try:
                    _, descriptors = await self._client.ask(verbs.Descriptors(id=after))
                except SandboxLost:
                    continue  # it ended in between
                binary = await self._binaries.of_digest(str(found["engine"]))
                self._take(after, descriptors, binary, memory_mb=int(found["memory_mb"]), pooled=False)

    def _told_ended(self, id: str, how: str, detail: str) -> None:
        sandbox = self._sandboxes.pop(id, None)
        if sandbox is not None:
            sandbox.end(Ending(How(how), detail))
            return
        self._early[id] = (how, detail)
        if len(self._early) > EARLY_MAX:
            self._early.popitem(last=False)

    async def _hand_over(self, client: Client) -> None:
        """The warden was killed: give the new one what we hold. What died together with the old one is lost."""
        for id, sandbox in list(self._sandboxes.items()):
            if sandbox.is_over:
                continue
            if sandbox.empty:  # new ones are made sooner than it is found out what state this one was left in; swept away below
                self._told_ended(id, How.LOST, "the warden ended")
                continue
            verb = verbs.Adopt(id=id, engine=sandbox.binary.digest, memory_mb=sandbox.memory_mb, pooled=sandbox.pooled)
            try:
                await client.ask_now(verb, sandbox.descriptors)
            except WardenGone:
                raise
            except EverforgeError as e:
                self._told_ended(id, How.LOST, e.message)
        await client.ask_now(verbs.Sweep())

    def _lose_all(self, why: str) -> None:
        """No warden can be had. Our ends are closed, so the guests end too."""
        for id in list(self._sandboxes):
            self._told_ended(id, How.LOST, why)

    def _own(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(_quietly(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        await asyncio.gather(self._empty.close(), self._ready.close())
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LINGER_SECONDS)
        await self._client.close()
        for sandbox in self._sandboxes.values():
            sandbox.link.close()
            sandbox.let_go()
        self._sandboxes.clear()


def _places(found: folders.Folders, images: Path, snapshots: Path, linger_seconds: float) -> Places:
    snapshots.mkdir(parents=True, exist_ok=True)
    return Places(found, images.resolve(), snapshots.resolve(), linger_seconds)


def _absolute(folder: Path) -> str:
    return str(folder.absolute())


async def _quietly(work: Coroutine[Any, Any, Any]) -> None:
    try:
        await work
    except EverforgeError:
        pass


def _template_key(image: Image, folder: Path, limits: Limits) -> object:
    """A folder that was removed and made again under the same name is another one."""
    try:
        found = (folder / "checkpoint.img").stat()
    except OSError:
        return None
    return (image.root, folder, found.st_ino, found.st_mtime_ns, limits.disk_mb)
