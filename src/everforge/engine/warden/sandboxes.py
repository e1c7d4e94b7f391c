"""The sandboxes that a warden holds, and what each verb does to them."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from everforge.wire.errors import (
    DiskFull,
    EverforgeError,
    InvalidInput,
    NoCapacity,
    SandboxLost,
    SaveFailed,
    StartFailed,
    WakeFailed,
)

from . import bundle, paths, processes, verbs
from .cgroups import Cgroups, Sizes
from .children import Children
from .commands import Runsc, is_disk_full
from .folders import Folders
from .held import Held, Stdio, how_it_ended, new_stdio
from .processes import Process
from .traces import Traces

SANDBOXES_MAX = 2000  # descriptors: five of each
START_SECONDS = 60.0
RESTORE_SECONDS = 300.0  # a large image from a cold disk
SAVE_SECONDS = 1800.0  # a save cannot be abandoned: the sentry would write on
DESTROY_SECONDS = 30.0
DESCRIPTORS_TO_SAVE = 256  # of the sentry's, for the commands and files of a save
GOFER_GRACE_SECONDS = 1.0  # a sentry that exits by itself takes its gofer along, and may be seen a moment later
DIRECT_BYTES = 384 * 1024 * 1024  # above it, writing past the page cache is faster (3x at 1 GB); below, the hash that follows finds the file there
ENTER_CGROUP = 'echo 0 > "$0" && exec "$@"'

Report = Callable[[str, str, str], None]


class Sandboxes:
    def __init__(self, folders: Folders, cgroups: Cgroups | None, children: Children, images: Path, snapshots: Path, report: Report) -> None:
        self._folders = folders
        self._cgroups = cgroups
        self._children = children
        self._images = images.resolve()
        self._snapshots = snapshots.resolve()
        self._report = report
        self._held: dict[str, Held] = {}
        self._traces = Traces(folders, cgroups)
        null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        self._nothing = (null, null, null)
        # Coming up wants a processor: more at once would only make all of them late. Saving mostly waits for the disk.
        self._turns = asyncio.Semaphore(max(4, 2 * (os.cpu_count() or 1)))

    @property
    def traces(self) -> Traces:
        return self._traces

    def __len__(self) -> int:
        return len(self._held)

    def all(self) -> list[Held]:
        return [self._held[id] for id in sorted(self._held)]

    def get(self, id: str) -> Held:
        held = self._held.get(id)
        if held is None or held.state == "ended":
            raise SandboxLost(f"there is no sandbox {id}")
        return held

    # --- new ones ----------------------------------------------------------------------------------------------------------------------

    async def start(self, verb: verbs.Start) -> Held:
        held, theirs = self._prepare(verb)
        return await self._bring_up(held, held.runsc.start(), theirs, START_SECONDS, StartFailed, verb)

    async def create(self, verb: verbs.Create) -> Held:
        held, theirs = self._prepare(verb)
        return await self._bring_up(held, held.runsc.create(), theirs, START_SECONDS, StartFailed, verb, "created")

    async def restore(self, verb: verbs.Restore) -> Held:
        folder = paths.snapshot(verb.folder, self._snapshots)
        if verb.id in self._held:
            return await self._restore_into(self.get(verb.id), folder, verb)
        held, theirs = self._prepare(verb)
        return await self._bring_up(held, held.runsc.restore(folder), theirs, RESTORE_SECONDS, WakeFailed, verb)

    async def _restore_into(self, held: Held, folder: Path, verb: verbs.Restore) -> Held:
        async with held.lock:
            if held.state != "created":
                raise InvalidInput(f"sandbox {held.id} is not an empty one")
            try:
                self._limit(held, verb)
                async with self._turns:
                    code, complaint = await self._command(held, held.runsc.restore(folder), self._nothing, RESTORE_SECONDS)
                if code != 0:
                    raise WakeFailed(f"the sandbox could not be restored: {complaint}")
            except BaseException:
                self._kill(held)
                raise
            held.state, held.pooled = "running", verb.pooled
        return self.get(held.id)

    def _prepare(self, verb: verbs.New) -> tuple[Held, tuple[int, int, int]]:
        """Everything but the command; raises before anything is left behind."""
        paths.check_image(verb.image, self._images)
        if verb.id in self._held:
            raise InvalidInput(f"there is a sandbox {verb.id} already")
        if len(self._held) >= SANDBOXES_MAX:
            raise NoCapacity(f"this host holds {SANDBOXES_MAX} sandboxes, which is the limit")
        managed = self._cgroups is not None and self._cgroups.managed
        runsc = Runsc(self._binary(verb.engine), self._folders, verb.id, disk_mb=verb.disk_mb, cgroups=managed)
        cgroup = self._cgroups.path(verb.id) if self._cgroups is not None and managed else None
        folder = self._folders.bundles / verb.id
        try:
            bundle.write(
                folder,
                image=verb.image,
                resources=bundle.resources(verb.memory_mb, verb.cpus, verb.processes),
                cgroup=cgroup,
            )
            stdio, theirs = new_stdio()
        except OSError as e:
            shutil.rmtree(folder, ignore_errors=True)
            raise StartFailed(f"a sandbox could not be prepared: {e}") from e
        held = Held(verb.id, verb.engine, runsc, stdio, verb.memory_mb, verb.pooled)
        self._held[verb.id] = held
        return held, theirs

    def _binary(self, engine: str) -> Path:
        binary = self._folders.engines / engine / "runsc"
        if not binary.is_file():
            raise InvalidInput(f"there is no engine {engine[:12]} in {self._folders.engines}")
        return binary

    async def _bring_up(
        self,
        held: Held,
        argv: list[str],
        theirs: tuple[int, int, int],
        seconds: float,
        failure: type[EverforgeError],
        sizes: verbs.Sized,
        state: str = "running",
    ) -> Held:
        async with held.lock:
            try:
                try:
                    async with self._turns:
                        code, complaint = await self._command(held, self._enter_cgroup(held, argv, sizes), theirs, seconds)
                finally:
                    for number in theirs:
                        os.close(number)
                if code != 0:
                    raise failure(f"the sandbox did not come up: {complaint}")
                if held.doomed:
                    raise SandboxLost(f"sandbox {held.id} was destroyed before it was up")
                self._find_processes(held)
            except BaseException as e:
                await self._undo(held)
                if isinstance(e, OSError):
                    raise failure(f"the sandbox did not come up: {e}") from e
                raise
            held.state = "created" if state == "created" else "running"
            held.watcher = asyncio.create_task(self._watch(held))
        return held

    async def _undo(self, held: Held) -> None:
        try:
            await self._traces.kill_all(held.id)
        finally:
            await self._forget(held)

    def _enter_cgroup(self, held: Held, argv: list[str], sizes: verbs.Sized) -> list[str]:
        if self._cgroups is None or self._cgroups.managed:
            return argv
        door = self._cgroups.make(held.id, Sizes(sizes.memory_mb, sizes.cpus, sizes.processes))
        return ["/bin/sh", "-c", ENTER_CGROUP, str(door), *argv]

    def _find_processes(self, held: Held) -> None:
        sentry, gofer = processes.recorded(held.id, self._folders.state) or (0, 0)
        held.sentry = Process.open(sentry, held.id, self._folders.state) if sentry else None
        held.gofer = Process.open(gofer, held.id, self._folders.state) if gofer else None
        if held.sentry is None:
            status = self._children.status(sentry)
            raise StartFailed(f"the sandbox ended at once: {': '.join(how_it_ended(status))} {held.stdio.last_words()}")

    def adopt(self, verb: verbs.Adopt, descriptors: list[int]) -> Held:
        """The descriptors are taken only when it succeeds."""
        if verb.id in self._held:
            raise InvalidInput(f"there is a sandbox {verb.id} already")
        managed = self._cgroups is not None and self._cgroups.managed
        runsc = Runsc(self._binary(verb.engine), self._folders, verb.id, cgroups=managed)
        held = Held(verb.id, verb.engine, runsc, Stdio(*descriptors), verb.memory_mb, verb.pooled, state="running")
        try:
            self._find_processes(held)
        except (StartFailed, OSError) as e:
            for process in held.processes:
                process.close()
            raise SandboxLost(f"sandbox {verb.id} ended together with its warden, or cannot be held by another: {e}") from e
        self._held[verb.id] = held
        held.watcher = asyncio.create_task(self._watch(held))
        return held

    # --- living ones -------------------------------------------------------------------------------------------------------------------

    async def save(self, verb: verbs.Save) -> None:
        held = self.get(verb.id)
        folder = paths.empty_folder(verb.folder, self._snapshots)
        async with held.lock:
            if self.get(verb.id).state != "running":
                raise InvalidInput(f"sandbox {verb.id} is not running")
            self._check_descriptors(held)
            direct = verb.direct and self.usage_bytes(held) >= DIRECT_BYTES
            code, complaint = await self._command(held, held.runsc.save(folder, direct=direct), self._nothing, SAVE_SECONDS)
        if code != 0:
            if is_disk_full(complaint, folder):
                raise DiskFull(f"the sandbox could not be saved and goes on: no space left on the disk of {folder.parent}")
            raise SaveFailed(f"the sandbox could not be saved and goes on: {complaint}")
        if missing := paths.missing(folder):
            raise SaveFailed(f"the sandbox could not be saved and goes on: {missing[0]} was not written")

    def _check_descriptors(self, held: Held) -> None:
        """A sentry without any left hears no command, and so none would ever end."""
        left = None if held.sentry is None else processes.descriptors_left(held.sentry.pid)
        if left is not None and left < DESCRIPTORS_TO_SAVE:
            raise SaveFailed(
                "the sandbox could not be saved and goes on: its programs hold too many files open for this computer; close some of them"
            )

    def claim(self, verb: verbs.Claim) -> Held:
        held = self.get(verb.id)
        self._limit(held, verb)
        held.pooled = False
        return held

    def _limit(self, held: Held, sizes: verbs.Sized) -> None:
        if self._cgroups is not None:
            try:
                self._cgroups.limit(held.id, Sizes(sizes.memory_mb, sizes.cpus, sizes.processes))
            except OSError as e:
                raise WakeFailed(f"the limits of sandbox {held.id} could not be set: {e}") from e
        held.memory_mb = sizes.memory_mb

    def usage_bytes(self, held: Held) -> int:
        used = self._cgroups.usage_bytes(held.id) if self._cgroups is not None else None
        if used is None and held.sentry is not None:
            used = processes.memory_bytes(held.sentry.pid)
        return used or 0

    def note_memory_kills(self, held: Held) -> None:
        held.note_memory_kills(self._memory_kills(held))

    def _memory_kills(self, held: Held) -> int:
        return self._cgroups.memory_kills(held.id) if self._cgroups is not None else 0

    # --- the end -----------------------------------------------------------------------------------------------------------------------

    async def destroy(self, id: str) -> None:
        """Also while it starts or is being saved; twice is fine."""
        held = self._held.get(id)
        if held is None:
            return
        held.doomed = True
        self._kill(held)
        with suppress(TimeoutError):
            async with asyncio.timeout(DESTROY_SECONDS):
                await held.gone.wait()

    async def destroy_all(self) -> None:
        await asyncio.gather(*(self.destroy(held.id) for held in self.all()))

    async def destroy_pooled(self) -> None:
        await asyncio.gather(*(self.destroy(held.id) for held in self.all() if held.pooled))

    def kill_over_memory(self, held: Held) -> None:
        held.over_memory = True
        self._kill(held)

    @staticmethod
    def _kill(held: Held) -> None:
        for process in held.processes:
            process.kill()

    async def _watch(self, held: Held) -> None:
        """From the moment it is up until no trace of it is left."""
        assert held.sentry is not None
        sentry = asyncio.create_task(held.sentry.ended())
        gofer = asyncio.create_task(held.gofer.ended()) if held.gofer is not None else sentry
        await asyncio.wait({sentry, gofer}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({sentry}, timeout=GOFER_GRACE_SECONDS)
        self._kill(held)
        await asyncio.wait({sentry, gofer})
        held.state = "ended"
        self._children.reap()
        self._report(held.id, *self._how(held))
        await self._forget(held)

    def _how(self, held: Held) -> tuple[str, str]:
        assert held.sentry is not None
        status = self._children.status(held.sentry.pid)
        if held.doomed:
            return "destroyed", ""
        how, detail = how_it_ended(status)
        if how != "exited" and held.is_out_of_memory(self._memory_kills(held)):
            return "out_of_memory", f"over its limit of {held.memory_mb} MB"
        words = held.stdio.last_words() if how == "exited" else ""
        return how, f"{detail}: {words}" if words else detail

    async def _forget(self, held: Held) -> None:
        held.state = "ended"
        for process in held.processes:
            process.close()
        held.stdio.close()
        await self._traces.erase(held.id)
        self._held.pop(held.id, None)
        held.gone.set()

    async def sweep(self) -> int:
        return await self._traces.sweep(self._held.keys())

    # --- commands ----------------------------------------------------------------------------------------------------------------------

    async def _command(self, held: Held, argv: list[str], stdio: tuple[int, int, int], seconds: float) -> tuple[int | None, str]:
        size = held.runsc.log_size()
        code = await self._children.run(argv, stdio, seconds)
        if code == 0:
            return 0, ""
        held.runsc.keep_log(self._folders.last_failure)
        return code, held.runsc.complaint(size) if code is not None else f"it took longer than {seconds:g} s"
