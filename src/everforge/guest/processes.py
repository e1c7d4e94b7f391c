"""The user's processes: started with nothing in their hands, found in /proc, stopped and continued together."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, NoReturn

from .limits import GuestLimits

USER_ID = 1000
PORTER_ID = 999  # out of the user's reach, and with no more rights
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
STOP_SECONDS_MAX = 1.0
KILL_ROUNDS_MAX = 50
STOPPED = frozenset("TtZXx")  # a dead process stands still too
DEAD = frozenset("ZXx")
UNSURE = DEAD | {"t"}  # of a process with more than one thread
STATES = {"R": "running", "S": "sleeping", "D": "in a system call that cannot be interrupted"}
MANY = 8  # processes: so many can keep the agent from running, and no limit of a single one bounds what they take together
FIRST_PRIVATE_FD = 600  # above what programs that close "all" descriptors by habit think of, below the usual limit of 1024

_libc = ctypes.CDLL(None, use_errno=True)


def is_init() -> bool:
    """Inside a sandbox everything but us is the user's. As an ordinary process (tests) only our descendants are."""
    return os.getpid() == 1


def is_privileged() -> bool:
    return is_init() and os.getuid() == 0


def private_copy(fd: int) -> int:
    """Out of the way of 0, 1 and 2 and of what programs close by habit; no child of ours inherits it."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FIRST_PRIVATE_FD)


def adopt_orphans() -> None:
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Process(NamedTuple):
    pid: int
    name: str
    state: str
    parent: int
    group: int
    session: int
    started: int  # in clock ticks since boot
    rss_pages: int


def read_file(path: str) -> bytes:
    """A small one of /proc, in three system calls; `open` takes twice as many, and they count when the user's processes leave us little time."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)


def read_process(pid: int) -> Process | None:
    found = _read_stat(pid, f"/proc/{pid}/stat")
    if found is None or found[0].state not in UNSURE or found[1] < 2:
        return found and found[0]
    # Its first thread has ended, or is held by a debugger: the others may run all the same, and hold what memory it has.
    threads = [one for tid in _list(f"/proc/{pid}/task") if (one := _read_stat(pid, f"/proc/{pid}/task/{tid}/stat"))]
    alive = [thread for thread, _ in threads if thread.state not in DEAD]
    moving = [thread for thread in alive if thread.state not in STOPPED]
    state = (moving or alive or [found[0]])[0].state
    return found[0]._replace(state=state, rss_pages=max([found[0].rss_pages, *(thread.rss_pages for thread in alive)]))


def _read_stat(pid: int, path: str) -> tuple[Process, int] | None:
    """And how many threads it has."""
    try:
        data = read_file(path)
        end = data.rindex(b")")  # the name before it may hold anything
        name, rest = data[data.index(b"(") + 1 : end].decode("utf-8", "replace"), data[end + 2 :].split()
        return Process(pid, name, rest[0].decode(), int(rest[1]), int(rest[2]), int(rest[3]), int(rest[19]), int(rest[21])), int(rest[17])
    except (OSError, ValueError, IndexError):
        return None


def _list(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []


def user_processes() -> list[Process]:
    found = [p for name in os.listdir("/proc") if name.isdigit() and (p := read_process(int(name)))]  # noqa: PTH208 - looked at often
    own = os.getpid()
    if is_init():
        return [p for p in found if p.pid != own]
    children: dict[int, list[Process]] = {}
    for process in found:
        children.setdefault(process.parent, []).append(process)
    family: list[Process] = []
    waiting = [own]
    while waiting:
        below = children.get(waiting.pop(), [])
        family += below
        waiting += [p.pid for p in below]
    return family


def send_signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def send_everyone(number: int) -> None:
    """A signal to everything of the user's: in a sandbox in one call, however many they are and however fast they fork."""
    if is_init():
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, number)  # all but ourselves
    else:
        for process in user_processes():
            send_signal(process.pid, number)


def count() -> int:
    """Of the user's processes in a sandbox, without looking at each."""
    return sum(map(str.isdigit, os.listdir("/proc"))) - 1  # noqa: PTH208 - looked at often


def ticks_at(moment: float) -> int:
    """A moment of the monotonic clock, not long ago, in the unit of `Process.started`."""
    booted_seconds = time.clock_gettime(time.CLOCK_BOOTTIME)
    return int((booted_seconds - (time.monotonic() - moment)) * os.sysconf("SC_CLK_TCK"))


class Standstill:
    """Every process of the user's stopped; those that were stopped before are left so at the end."""

    def __init__(self) -> None:
        self._stopped_by_us: set[int] = set()
        self._stopped_before: set[int] = set()

    def begin(self) -> list[Process]:
        """Those that would not stand still, which is nobody as a rule. The agent does nothing else meanwhile: for milliseconds, at worst a second."""
        deadline = time.monotonic() + STOP_SECONDS_MAX
        pause = 0.0002
        found = user_processes()
        self._stopped_before = {p.pid for p in found if p.state in "Tt"}
        while True:
            for process in found:
                if process.state not in STOPPED:
                    send_signal(process.pid, signal.SIGSTOP)
                    self._stopped_by_us.add(process.pid)
            moving = _moving(found)
            if not moving or time.monotonic() > deadline:
                return moving
            time.sleep(pause)
            pause = min(pause * 1.2, 0.005)
            found = user_processes()

    def end(self) -> None:
        for pid in self._stopped_by_us - self._stopped_before:
            send_signal(pid, signal.SIGCONT)
        self._stopped_by_us.clear()


def _moving(found: list[Process]) -> list[Process]:
    """Those that may still run. A parent in vfork is never seen stopped, but its child, if that stands still, keeps it where it is."""
    standing = {p.pid for p in found if p.state in STOPPED}
    stopped = {p.pid for p in found if p.state in "Tt"}
    children: dict[int, set[int]] = {}
    for process in found:
        children.setdefault(process.parent, set()).add(process.pid)
    while True:
        moving = [p for p in found if p.pid not in standing]
        held = {p.pid for p in moving if p.state == "D" and children.get(p.pid, set()) & stopped and children[p.pid] <= standing}
        if not held:
            return moving
        standing |= held
        stopped |= held


def kill_all(processes: Iterable[Process]) -> None:
    for process in processes:
        send_signal(process.pid, signal.SIGKILL)


def end_all(which: Callable[[Process], bool]) -> None:
    """Also those that are forked meanwhile. Dead ones count against the limit of processes until they are reaped, so a fork bomb runs out of them."""
    killed: set[int] = set()
    for _ in range(KILL_ROUNDS_MAX):
        found = [p for p in user_processes() if p.pid not in killed and p.state not in DEAD and which(p)]
        if not found:
            return
        kill_all(found)
        killed.update(p.pid for p in found)


class Outfit(NamedTuple):
    """What a process of the user's gets from us, and nothing besides."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    stdio: tuple[int, int, int]  # private descriptors, far above 2
    keep: tuple[int, ...]  # further descriptors, inherited under their own numbers
    limits: GuestLimits


def spawn(outfit: Outfit) -> int:
    switch_user = is_privileged()
    pid = os.fork()
    if pid == 0:
        _become_user(outfit, switch_user)
    return pid


def _become_user(outfit: Outfit, switch_user: bool) -> NoReturn:
    try:
        os.setsid()
        for target, source in enumerate(outfit.stdio):
            os.dup2(source, target)
        for fd in outfit.keep:
            os.set_inheritable(fd, True)
        drop_privileges(switch_user)
        outfit.limits.apply()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        # There is no terminal to hang up. gVisor sends SIGHUP to a process group without a parent in its session whenever one of its members
        # ends while another is stopped, which is what our standstill looks like: whoever the user starts must survive that.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with contextlib.suppress(OSError):
            os.chdir(outfit.cwd)
        os.execve(outfit.argv[0], list(outfit.argv), dict(outfit.env))
    except BaseException as e:
        os.write(2, f"the interpreter could not be started: {e}\n".encode())
    finally:
        os._exit(126)


def drop_privileges(switch_user: bool, id: int = USER_ID) -> None:
    """To the user's uid, for good: no capability is left, and none can be gained through a set-uid file."""
    if switch_user:
        os.setgroups([])
        os.setresgid(id, id, id)
        os.setresuid(id, id, id)
    if _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs was refused")


def fork_clerk(action: Callable[[], None], keep: Collection[int], limits: GuestLimits, id: int = USER_ID) -> int:
    """`action` in a process of the user's (or of another `id`) that has nothing of ours but these descriptors, and is reaped like any other."""
    switch_user = is_privileged()
    pid = os.fork()
    if pid == 0:
        try:
            _forget_agent(keep)
            drop_privileges(switch_user, id)
            limits.apply()
            action()
        finally:
            os._exit(0)
    return pid


def _forget_agent(keep: Collection[int]) -> None:
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    os.umask(0o022)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as everybody's: see `_become_user`
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        if int(name) > 2 and int(name) not in keep:
            with contextlib.suppress(OSError):
                os.close(int(name))


def run_as_user(action: Callable[[], None]) -> None:
    """`action` in a short-lived process of the user's: files it makes are the user's, and what it breaks is not ours."""
    switch_user = is_privileged()
    pid = os.fork()
    if pid == 0:
        try:
            drop_privileges(switch_user)
            action()
        finally:
            os._exit(0)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
