"""Is there hardware virtualisation, really? Where `/dev/kvm` is there for show all works but the last step: so one instruction is run."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import platform
import signal
import struct

KVM = "/dev/kvm"
GET_API_VERSION, CREATE_VM, GET_VCPU_MMAP_SIZE, CREATE_VCPU, RUN = 0xAE00, 0xAE01, 0xAE04, 0xAE41, 0xAE80
SET_USER_MEMORY_REGION, SET_REGS, GET_SREGS, SET_SREGS = 0x4020AE46, 0x4090AE82, 0x8138AE83, 0x4138AE84
API_VERSION = 12
SREGS_BYTES, REGS = 312, 18  # of which number 16 is the instruction pointer and 17 the flags
HALT, HALTED = b"\xf4", 5
CODE_AT = 0x1000
SECONDS_MAX = 3  # a computer without it may emulate it, or hang in it


class NotForUs(Exception):
    """It is there, and this user may not use it."""


def kvm_problem(path: str = KVM) -> str:
    """Why there is none, or nothing. Raises NotForUs."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except PermissionError as e:
        raise NotForUs(path) from e
    except OSError as e:
        return f"{path}: {(e.strerror or str(e)).lower()}"
    try:
        version = fcntl.ioctl(handle, GET_API_VERSION, 0)
        if version != API_VERSION:
            return f"{path} speaks version {version}"
        return _run_apart(handle)
    except OSError as e:
        return f"{path} does not answer: {(e.strerror or str(e)).lower()}"
    finally:
        os.close(handle)


def _run_apart(handle: int) -> str:
    """In a process of its own, which the kernel ends when it takes too long."""
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(SECONDS_MAX)
            os._exit(0 if _halts(handle) else 1)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == -signal.SIGALRM:
        return f"it ran nothing within {SECONDS_MAX} s"
    return "" if status == 0 else "it runs nothing"


def _halts(handle: int) -> bool:
    """A computer of one page, whose only instruction is to stop."""
    vm = fcntl.ioctl(handle, CREATE_VM, 0)
    if platform.machine() != "x86_64":
        return True  # as far as we know how to ask
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    memory[: len(HALT)] = HALT
    place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    fcntl.ioctl(vm, SET_USER_MEMORY_REGION, struct.pack("IIQQQ", 0, 0, CODE_AT, mmap.PAGESIZE, place))
    processor = fcntl.ioctl(vm, CREATE_VCPU, 0)
    shared = mmap.mmap(processor, fcntl.ioctl(handle, GET_VCPU_MMAP_SIZE, 0))
    segments = bytearray(SREGS_BYTES)
    fcntl.ioctl(processor, GET_SREGS, segments)
    struct.pack_into("QIH", segments, 0, 0, 0xFFFF, 0)  # code begins at 0
    fcntl.ioctl(processor, SET_SREGS, bytes(segments))
    fcntl.ioctl(processor, SET_REGS, struct.pack(f"{REGS}Q", *[0] * 16, CODE_AT, 2))
    fcntl.ioctl(processor, RUN, 0)
    return struct.unpack_from("I", shared, 8)[0] == HALTED
