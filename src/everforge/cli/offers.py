"""What else this computer offers, tried for `everforge doctor`: little of it keeps machines from running."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
IN_MEMORY = ("tmpfs", "ramfs")
SLOW_SYNC_SECONDS = 0.25  # a machine goes to sleep with a handful of these
SYNC_BYTES = 1024 * 1024


def seccomp_problem() -> str:
    """Why system calls cannot be filtered here, or nothing. A filter that lies at no address changes nothing, and the kernel says how far it got."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, None, 0, 0)
    found = ctypes.get_errno()
    return "" if found in (errno.EFAULT, errno.EACCES) else os.strerror(found).lower()


def file_system(folder: Path, mounts: str | None = None) -> str:
    """Its kind: ext4, tmpfs, ..."""
    text = Path("/proc/self/mountinfo").read_text() if mounts is None else mounts
    best, kind = "", "unknown"
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        place = before.split()[4].replace("\\040", " ")
        if (folder == Path(place) or Path(place) in folder.parents) and len(place) >= len(best):
            best, kind = place, after.split()[0]
    return kind


def sync_seconds(folder: Path) -> float:
    """Until a small file is safe on the disk. Raises OSError."""
    with tempfile.NamedTemporaryFile(prefix=".everforge-doctor-", dir=folder) as file:
        began = time.perf_counter()
        file.write(bytes(SYNC_BYTES))
        file.flush()
        os.fsync(file.fileno())
        return time.perf_counter() - began


def writes_directly(folder: Path) -> bool:
    """Past the page cache, which is how large machines are saved quickly. Tried with one page."""
    name = folder / f".everforge-doctor-{os.getpid()}"
    try:
        handle = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_DIRECT | os.O_CLOEXEC, 0o600)
    except OSError:
        name.unlink(missing_ok=True)  # some file systems make it first
        return False
    try:
        with mmap.mmap(-1, mmap.PAGESIZE) as page:  # aligned, as it must be
            return os.write(handle, page) == mmap.PAGESIZE
    except OSError:
        return False
    finally:
        os.close(handle)
        name.unlink(missing_ok=True)


def package_indexes() -> list[str]:
    """Hosts of the indexes that this computer's pip is configured for; none when it is not. Nobody is asked anything."""
    from everforge.egress.packages import read_settings

    found = (urlsplit(url).hostname for url in read_settings().urls)
    return [host for host in found if host]
