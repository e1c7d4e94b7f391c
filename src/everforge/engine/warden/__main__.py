"""Starts a warden for a data folder: `python -m everforge.engine.warden --data D --images I --snapshots S`.

Exits with 0 as soon as the warden, by then a process of its own session, listens; with verbs.BUSY when another one has the folder; with 1 and a
sentence on stderr when it cannot be.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import logging
import os
import resource
import socket
import sys
import time
from pathlib import Path

from everforge.wire.errors import EngineUnfit

from . import cgroups, children, folders, namespaces, verbs, watch
from .door import Door
from .sandboxes import Sandboxes

LISTEN_BACKLOG = 8
EXPECTED_SECONDS = 60.0  # for whoever had us started to come, on a computer that is out of breath; they may bring sandboxes that our end would cost
LOG_BYTES_MAX = 1024 * 1024


def main() -> int:
    parser = argparse.ArgumentParser(prog="everforge.engine.warden")
    for name in ("--data", "--images", "--snapshots"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--linger-seconds", type=float, default=30.0, help="how long to stay with nothing to hold and nobody to hold it for")
    parser.add_argument("--namespaces", type=int, nargs=2, help="descriptors of the user and mount namespace of an earlier warden")
    options = parser.parse_args()
    _close_inherited(options.namespaces or [])
    ready, tell_ready = os.pipe()
    child = os.fork()
    if child:
        # The warden must not be a child of the server, which would have to reap it.
        os.close(tell_ready)
        if os.read(ready, 1) == b"\n":
            return 0
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) or 1
    os.close(ready)
    os.setsid()
    try:
        _guard(options, tell_ready)
    except BlockingIOError:
        os._exit(verbs.BUSY)
    except IsADirectoryError as e:
        print(f"the warden cannot start: {e.filename} is a folder, and not its file: move it away", file=sys.stderr)
        os._exit(1)
    except (OSError, EngineUnfit) as e:
        print(f"the warden cannot start: {e}", file=sys.stderr)
        os._exit(1)
    return 0


def _close_inherited(wanted: list[int]) -> None:
    """It outlives whoever starts it, who may be waiting for the other end of some pipe to be closed."""
    for number in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        if number > 2 and number not in wanted:
            with contextlib.suppress(OSError):  # the one that was just read
                os.close(number)


def _guard(options: argparse.Namespace, tell_ready: int) -> None:
    os.umask(0o077)
    places = folders.find(options.data)
    lock = _lock(places)
    root = os.geteuid() == 0
    groups = cgroups.detect(places.mark, root=root)
    if options.namespaces:
        namespaces.join(options.namespaces)
    elif not root:
        namespaces.enter()
    children.become_subreaper()
    _allow_many_descriptors()
    listener = _listen(places)
    _detach(places)
    facts = {"rootless": str(not root).lower(), "cgroups": f"v{groups.version}" if groups else "none", "limits": _how_limited(groups)}
    facts |= {name: str(getattr(options, name)) for name in ("data", "images", "snapshots")}
    os.write(tell_ready, b"\n")
    os.close(tell_ready)
    asyncio.run(_run(places, lock, groups, listener, facts, options, rootless=not root))
    os.close(lock)


def _allow_many_descriptors() -> None:
    """Sandboxes inherit it. One holds two for each file of its image that its programs have open, and one without any left could not be saved."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(OSError, ValueError):
        most = int(Path("/proc/sys/fs/nr_open").read_text())
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # as root
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _how_limited(groups: cgroups.Cgroups | None) -> str:
    if groups is None:
        return "rlimits in the guest and a watch on the memory of sandboxes"
    return "control groups" if groups.managed else "control groups delegated to this user"


def _lock(places: folders.Folders) -> int:
    """One warden per data folder. Raises BlockingIOError when there is one."""
    while True:
        folders.make(places)
        lock = os.open(places.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            if os.fstat(lock).st_ino == places.lock.stat().st_ino:
                return lock
        except FileNotFoundError:
            pass
        os.close(lock)  # a warden that ended removed the folder between the two steps
        time.sleep(0.01)


def _listen(places: folders.Folders) -> socket.socket:
    places.socket.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(places.socket))
    listener.listen(LISTEN_BACKLOG)
    return listener


def _detach(places: folders.Folders) -> None:
    os.chdir("/")
    if places.log.exists() and places.log.stat().st_size > LOG_BYTES_MAX:
        places.log.unlink()
    null = os.open("/dev/null", os.O_RDWR)
    log = os.open(places.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(number, target)
    os.close(null)
    os.close(log)
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)


def _is_ours(places: folders.Folders, lock: int) -> bool:
    """Another data folder may have been put where ours was, with a warden of its own: then nothing there is ours to remove."""
    try:
        return os.path.samestat(os.fstat(lock), places.lock.stat())
    except OSError:
        return False


async def _run(
    places: folders.Folders,
    lock: int,
    groups: cgroups.Cgroups | None,
    listener: socket.socket,
    facts: dict[str, str],
    options: argparse.Namespace,
    *,
    rootless: bool,
) -> None:
    family = children.Children()
    family.begin()
    door = Door(listener, facts, rootless=rootless)
    sandboxes = door.sandboxes = Sandboxes(places, groups, family, options.images, options.snapshots, door.report)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(door.serve()), group.create_task(watch.watch_slowly(sandboxes))]
        tasks.append(group.create_task(watch.watch_memory(sandboxes) if groups is None else watch.watch_processors(sandboxes, groups)))
        await _until_unneeded(places, lock, door, sandboxes, options.linger_seconds)
        listener.close()
        if _is_ours(places, lock):
            places.socket.unlink(missing_ok=True)
        for task in tasks:
            task.cancel()
    if _is_ours(places, lock) or not places.lock.exists():
        sandboxes.traces.clear()


async def _until_unneeded(places: folders.Folders, lock: int, door: Door, sandboxes: Sandboxes, linger_seconds: float) -> None:
    """Nothing is held and nobody came for a while; or the data folder is gone or another's, and no server can ever come back to what is held."""
    seconds = max(linger_seconds, EXPECTED_SECONDS)
    while True:
        door.changed.clear()
        try:
            async with asyncio.timeout(seconds):
                await door.changed.wait()
            seconds = linger_seconds
        except TimeoutError:
            if door.is_held:
                continue
            if not places.data.exists() or not _is_ours(places, lock):
                await sandboxes.destroy_all()
            if len(sandboxes) == 0:
                return


if __name__ == "__main__":
    sys.exit(main())
