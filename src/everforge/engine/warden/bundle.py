"""The OCI specification of a sandbox, written by the warden from typed fields and by nobody else.

A restore refuses a snapshot whose arguments, user, capabilities, rlimits or mounts differ from the new specification's: everything here but the
hostname and the resources must stay the same for as long as snapshots shall be restored.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

# What the sentry, its threads and the gofer take beside the guest's memory: 25 to 60 MB were measured, and a restore peaks above that. The
# guest's own limit (`memory_mb`, kept by the agent) is reached first: a greedy program gets a MemoryError and not the end of its machine.
SENTRY_MEMORY_MB = 128
# A guest process costs two host tasks, and a third in the sentry while it is in a system call; the sentry itself some 60. With too few the sentry
# ends (it cannot make a thread), or the *restore* dies, though the guest was within its limit.
TASKS_PER_PROCESS = 4
SENTRY_TASKS = 100
CPU_PERIOD_US = 100_000

OPEN_FILES = 65_536  # generous: the agent lowers it for the user's processes, and a restore refuses a change
SHM_MB = 64  # what container engines give; it lies in memory

AGENT = "import sys; sys.path.insert(0, '/usr/lib/everforge'); from _everforge.guest.agent import main; main()"
CAPABILITIES = ["CAP_KILL", "CAP_SETGID", "CAP_SETUID"]  # to become the user, and to stop and end the user's processes; nothing else


def write(folder: Path, *, image: str, resources: dict[str, Any] | None, cgroup: str | None) -> None:
    folder.mkdir(mode=0o700)
    (folder / "config.json").write_text(json.dumps(specification(image, resources, cgroup)))


def specification(image: str, resources: dict[str, Any] | None, cgroup: str | None) -> dict[str, Any]:
    linux: dict[str, Any] = {"namespaces": [{"type": t} for t in ("pid", "network", "ipc", "uts", "mount")]}
    if cgroup is not None:
        linux |= {"cgroupsPath": cgroup, "resources": resources}
    return {
        "ociVersion": "1.0.0",
        "hostname": f"m{secrets.token_hex(5)}",  # of the sandbox, not of the machine: forks and copies all differ
        # Writes go to the overlay's file; the image below it is never written.
        "root": {"path": image, "readonly": False},
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": ["/usr/bin/python3", "-I", "-S", "-c", AGENT],
            "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"],
            "cwd": "/",
            "noNewPrivileges": True,
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), CAPABILITIES),
            "rlimits": [{"type": "RLIMIT_NOFILE", "soft": OPEN_FILES, "hard": OPEN_FILES}],
        },
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro", "nosuid", "nodev", "noexec"]},
            _tmpfs("/dev/shm", f"{SHM_MB}m"),
            # gVisor lays a tmpfs without a size over an empty /tmp. A mount below it keeps /tmp on the machine's disk, sized and not in memory.
            _tmpfs("/tmp/.X11-unix", "64k"),
        ],
        "linux": linux,
    }


def _tmpfs(destination: str, size: str) -> dict[str, Any]:
    return {"destination": destination, "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777", f"size={size}"]}


def memory_bytes(memory_mb: int) -> int:
    return (memory_mb + SENTRY_MEMORY_MB) * 1024 * 1024


def tasks(processes: int) -> int:
    return TASKS_PER_PROCESS * processes + SENTRY_TASKS


def cpu_quota_us(cpus: float) -> int:
    return max(1000, int(cpus * CPU_PERIOD_US))  # the kernel takes no less than 1 ms


def resources(memory_mb: int, cpus: float, processes: int) -> dict[str, Any]:
    return {
        "memory": {"limit": memory_bytes(memory_mb)},
        "cpu": {"quota": cpu_quota_us(cpus), "period": CPU_PERIOD_US},
        "pids": {"limit": tasks(processes)},
    }
