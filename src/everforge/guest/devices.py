"""Devices of gVisor that nobody in a machine is to have.

A network card made with `net/tun` cannot be saved: the machine would never sleep again. To make one takes a right that anybody has in a user
namespace of their own, so the device itself goes. `fuse` goes with it: nothing needs it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os

from .processes import is_privileged

TAKEN = ("/dev/net/tun", "/dev/fuse")
CLONE_NEWNS, CLONE_NEWUSER = 0x0002_0000, 0x1000_0000

_libc = ctypes.CDLL(None, use_errno=True)


def take_away() -> None:
    """Out of /dev, and out of the one devtmpfs that whoever mounts one in a namespace of their own gets to see. No new ones can be made: mknod is
    refused to everybody. It is the agent that mounts that devtmpfs first, so that it is root's."""
    if not is_privileged():
        return
    _unlink()
    pid = os.fork()
    if pid == 0:
        try:
            if _libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 and _libc.mount(b"none", b"/dev", b"devtmpfs", 0, None) == 0:
                _unlink()
        finally:
            os._exit(0)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _unlink() -> None:
    for path in TAKEN:
        with contextlib.suppress(OSError):
            os.unlink(path)  # noqa: PTH108
