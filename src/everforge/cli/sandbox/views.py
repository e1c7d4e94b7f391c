"""The same questions, answered inside the machine and outside of it."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .attack import Seen
from .inside import pids, read, status


def surroundings(told: dict[str, Any]) -> dict[str, Any]:
    """Runs in both places."""
    fields = dict(line.split(":", 1) for line in read("/proc/meminfo").splitlines() if ":" in line)
    routes = read("/proc/net/route").splitlines()[1:]
    mounted = [line.split()[:3] for line in read("/proc/self/mounts").splitlines()]
    limits = dict(line[:26].split("  ")[:1] + line[26:].split()[:1] for line in read("/proc/self/limits").splitlines()[1:] if len(line) > 26)
    return {
        "kernel": f"{platform.system()} {platform.release()}",
        "name": platform.node(),
        "uid": os.getuid(),
        "rights": int(status().get("CapEff", "0"), 16).bit_count(),
        "locked": status().get("NoNewPrivs", "?"),
        "processes": len(pids()),
        "mounts": len(mounted),
        "disks": len([one for one in mounted if one[0].startswith("/dev/")]),
        "cards": sorted(name for _, name in socket.if_nameindex()),
        "routes": len(routes),
        "memory_mb": int(fields.get("MemTotal", "0").split()[0]) // 1024,
        "disk_mb": os.statvfs("/").f_blocks * os.statvfs("/").f_frsize >> 20,
        "processors": os.cpu_count() or 0,
        "folders": sorted(os.listdir("/")),
        "processes_max": limits.get("Max processes", "?"),
        "files_max": limits.get("Max open files", "?"),
    }


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    inside: str
    outside: str


def rows(inside: Seen, outside: Seen, limits: Mapping[str, float]) -> list[Row]:
    """A machine may see more memory, disk and processes than it gets: what it is shown to have is what the server gave it."""
    given = {"memory_mb": int(limits["memory_mb"]), "disk_mb": int(limits["disk_mb"]), "processes_max": f"{limits['processes']:.0f}"}
    limited = replace(inside, fact={**inside.fact, **given})
    return [Row(what, show(limited), show(outside)) for what, show in SHOWN]


def _user(seen: Seen) -> str:
    return f"number {seen.number('uid')}" + (", the administrator" if seen.number("uid") == 0 else ", an ordinary user")


def _rights(seen: Seen) -> str:
    return f"{seen.number('rights')} of 41" + (", and can never get any" if seen.number("rights") == 0 and seen.text("locked") == "1" else "")


def _mounts(seen: Seen) -> str:
    return f"{seen.number('mounts')}, {seen.number('disks') or 'none'} on a real disk"


SHOWN: tuple[tuple[str, Callable[[Seen], str]], ...] = (
    ("Kernel (the core of the system)", lambda seen: seen.text("kernel")),
    ("Name of the computer", lambda seen: seen.text("name")),
    ("User", _user),
    ("Administrator's rights (capabilities)", _rights),
    ("Programs running", lambda seen: str(seen.number("processes"))),
    ("Attached file systems (mounts)", _mounts),
    ("Network cards", lambda seen: ", ".join(seen.texts("cards")) + (" (itself only)" if seen.texts("cards") == ["lo"] else "")),
    ("Ways out to the network (routes)", lambda seen: str(seen.number("routes") or "none")),
    ("Memory", lambda seen: f"{seen.number('memory_mb'):,} MB"),
    ("Disk", lambda seen: f"{seen.number('disk_mb'):,} MB"),
    ("Processors", lambda seen: str(seen.number("processors"))),
    ("Most programs at once", lambda seen: seen.text("processes_max")),
    ("Most open files of a program", lambda seen: seen.text("files_max")),
)
