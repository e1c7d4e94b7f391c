"""The agent's side of the interpreter child: starting it, giving it orders, hearing it. What it says is hostile until checked."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path

from ..wire.errors import ProtocolError
from ..wire.messages import CALLS_BYTES_MAX
from . import channel, processes, ring
from .channel import Frame
from .limits import GuestLimits

PACKETS_AT_ONCE = 32  # then the pipes get their turn
FRAME_RESERVE_BYTES = 2 * 1024 * 1024  # traceback, note and the like beside a result of the full size
UNSENT_BYTES_MAX = 64 * 1024 * 1024  # of all orders
ROOT = str(Path(__file__).parents[2])


def command(fds: tuple[int, ...], user_site: bool) -> list[str]:
    """-P: a file random.py in the user's folder must not keep the interpreter from starting. Its own folder is put on the path afterwards."""
    package = __package__
    program = f"import sys; sys.path.insert(0, {ROOT!r}); from {package}.interpreter import main; main{fds}"
    return [sys.executable, "-P", *([] if user_site else ["-s"]), "-c", program]


class Worker:
    """One interpreter process."""

    def __init__(self, env: Mapping[str, str], cwd: str, outlet_fds: list[int], limits: GuestLimits, user_site: bool) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        keep = fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD_CLOEXEC, processes.FIRST_PRIVATE_FD)
        self.fd = fcntl.fcntl(ours.fileno(), fcntl.F_DUPFD_CLOEXEC, processes.FIRST_PRIVATE_FD)
        os.set_blocking(self.fd, False)
        made = ring.create()
        ring_fd = fcntl.fcntl(made, fcntl.F_DUPFD_CLOEXEC, processes.FIRST_PRIVATE_FD)
        self.ring = ring.Reader(ring_fd)
        null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        stdin = fcntl.fcntl(null, fcntl.F_DUPFD_CLOEXEC, processes.FIRST_PRIVATE_FD)
        stdio = (stdin, outlet_fds[0], outlet_fds[1])
        # Its own copies of the pipes are made here: with few descriptors allowed it could not make them itself.
        fds = (keep, ring_fd, *outlet_fds)
        self.pid = processes.spawn(processes.Outfit(command(fds, user_site), env, cwd, stdio, fds, limits))
        for fd in (keep, made, ring_fd, null, stdin):
            os.close(fd)
        ours.close()
        theirs.close()
        self.ready = False
        self._number = 0
        self.unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._unpacker = channel.Unpacker(0)
        self.limit(limits)

    def limit(self, limits: GuestLimits) -> None:
        self._unpacker.frame_bytes_max = max(limits.result_bytes_max, limits.display_bytes_max) + FRAME_RESERVE_BYTES

    def order(self, kind: int, body: bytes) -> None:
        """Raises ProtocolError for one that does not take what it is told: it can have had no more answers than it may have calls that wait."""
        packets = channel.pack(kind, body, self._number + 1)
        self._unsent_bytes += sum(map(len, packets))
        if self._unsent_bytes > (CALLS_BYTES_MAX if kind == channel.ANSWER else UNSENT_BYTES_MAX):
            raise ProtocolError("it does not take what it is told")
        self._number += len(packets)
        self.unsent.extend(packets)
        self.write()

    def write(self) -> None:
        while self.unsent:
            try:
                os.write(self.fd, self.unsent[0])
            except BlockingIOError:
                return
            except OSError:  # it has closed its end: its death is seen elsewhere
                self.unsent.clear()
                self._unsent_bytes = 0
                return
            self._unsent_bytes -= len(self.unsent.popleft())

    def hear(self) -> tuple[list[Frame], bool]:
        """Frames that have come, and whether the channel is still open. Raises ProtocolError for what no interpreter of ours would say."""
        heard: list[Frame] = []
        for _ in range(PACKETS_AT_ONCE):
            try:
                packet = os.read(self.fd, channel.PACKET_BYTES_MAX + 1)
            except BlockingIOError:
                return heard, True
            except OSError:
                return heard, False
            if not packet:
                return heard, False
            frame = self._unpacker.add(packet)
            if frame is not None:
                heard.append(frame)
                if frame.kind == channel.END:
                    break  # it says no more until it is told to; asking would be a system call for nothing
        return heard, True

    def interrupt(self, since_ticks: int) -> None:
        """As Ctrl-C does: the interpreter, and what the running instruction has started in its process group. Older daemons are left alone."""
        for process in processes.user_processes():
            if process.pid == self.pid or (process.group == self.pid and process.started >= since_ticks):
                processes.send_signal(process.pid, signal.SIGINT)

    def kill(self) -> None:
        """The interpreter first, so that it starts nothing more, then everything else of its session."""
        processes.send_signal(self.pid, signal.SIGKILL)
        processes.end_all(lambda p: self.pid in (p.pid, p.session, p.group))

    def close(self) -> None:
        self.ring.close()
        with contextlib.suppress(OSError):
            os.close(self.fd)


def describe_exit(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        return f"it was killed by {name}"
    code = os.waitstatus_to_exitcode(status)
    if code == channel.EXIT_CHANNEL_LOST:
        return "it lost its connection to the agent: its file descriptors were closed"
    return f"it exited with status {code}"
