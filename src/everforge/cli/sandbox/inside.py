"""What attacks have at hand inside the machine. The text of this file is sent there with each of them: standard library only."""

from __future__ import annotations

import errno
import os
import platform
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

FILE_BYTES_MAX = 65_536
# By number, since the C library has no function for most of them.
CALLS = {
    "x86_64": {
        "mount": 165, "pivot_root": 155, "chroot": 161, "reboot": 169, "init_module": 175, "adjtimex": 159, "kexec_load": 246, "add_key": 248,
        "keyctl": 250, "unshare": 272, "perf_event_open": 298, "open_by_handle_at": 304, "setns": 308, "finit_module": 313, "bpf": 321,
        "userfaultfd": 323, "io_uring_setup": 425, "ptrace": 101, "swapon": 167, "iopl": 172, "process_vm_readv": 310, "process_vm_writev": 311,
        "acct": 163, "sethostname": 170, "clock_settime": 227, "fsopen": 430, "pidfd_open": 434, "pidfd_getfd": 438, "umount2": 166,
    },
    "aarch64": {
        "mount": 40, "pivot_root": 41, "chroot": 51, "reboot": 142, "init_module": 105, "adjtimex": 171, "kexec_load": 104, "add_key": 217,
        "keyctl": 219, "unshare": 97, "perf_event_open": 241, "open_by_handle_at": 265, "setns": 268, "finit_module": 273, "bpf": 280,
        "userfaultfd": 282, "io_uring_setup": 425, "ptrace": 117, "swapon": 224, "process_vm_readv": 270, "process_vm_writev": 271,
        "acct": 89, "sethostname": 161, "clock_settime": 112, "fsopen": 430, "pidfd_open": 434, "pidfd_getfd": 438, "umount2": 39,
    },
}  # fmt: skip


def attempt(act: Callable[[], Any]) -> str:
    """The name of the error that it met, or "done"."""
    try:
        act()
    except OSError as e:
        return errno.errorcode.get(e.errno or 0, str(e))
    return "done"


def number_of(name: str) -> int:
    """Raises where it is not known: a call that is not made was not refused either."""
    numbers = CALLS.get(platform.machine(), {})
    if name not in numbers:
        raise LookupError(f"the number of {name} on {platform.machine()} is not known here")
    return numbers[name]


def call(name: str, *arguments: Any) -> str:
    """A system call, made as an attacker would: by its number. The name of its error, or "done"."""
    import ctypes

    number = number_of(name)
    libc = ctypes.CDLL(None, use_errno=True)
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    if libc.syscall(ctypes.c_long(number), *given) >= 0:
        return "done"
    return errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


def call_apart(name: str, *arguments: Any) -> str:
    """The same in a process of its own, for what would change this one."""
    number_of(name)  # raises here, where it is seen
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, call(name, *arguments).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    said = os.read(reading, 100).decode()
    os.close(reading)
    return said or "nothing"


def read(path: str | Path) -> str:
    """As much of a file as anybody needs; empty when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(FILE_BYTES_MAX).decode("utf-8", "replace")
    except OSError:
        return ""


def opened(path: str, flags: int = os.O_RDWR) -> str:
    """Opened and closed again, nothing written: that it can be opened is enough."""
    return attempt(lambda: os.close(os.open(path, flags | os.O_CLOEXEC)))


def heard(address: tuple[str, int] | str, seconds: float = 2.0) -> dict[str, Any]:
    """A connection, and what the other side says first."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(seconds)
        try:
            connection.connect(address)
        except OSError as e:
            return {"why": errno.errorcode.get(e.errno or 0, str(e)), "said": ""}
        try:
            return {"why": "done", "said": connection.recv(200).decode("utf-8", "replace")}
        except OSError:
            return {"why": "done", "said": ""}


def status(pid: str = "self") -> dict[str, str]:
    pairs = (line.split(":", 1) for line in read(f"/proc/{pid}/status").splitlines() if ":" in line)
    return {name: value.strip() for name, value in pairs}


def pids() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdigit()]
