"""A user namespace for a warden whose user is not root: inside it plain runsc runs, checkpoints and restores.

A warden that replaces a killed one must stand in the *same* namespaces, or it could not control the sandboxes. The server keeps descriptors of them,
and hands them to the new warden.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
NAMES = ("user", "mnt")  # the user namespace first, since it gives the right to enter the other


def enter() -> None:
    """New namespaces, where this user is root and nobody else exists. The caller has one thread."""
    uid, gid = os.geteuid(), os.getegid()
    _call("unshare", CLONE_NEWUSER | CLONE_NEWNS)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1")


def join(descriptors: list[int]) -> None:
    """Those of an earlier warden, as `open_own` gave them."""
    for descriptor in descriptors:
        _call("setns", descriptor, 0)
        os.close(descriptor)


def open_own() -> list[int]:
    return [os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in NAMES]


def _call(name: str, *arguments: int) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
