"""Everything on the host that one sandbox is or has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from everforge.engine.warden.folders import find as find_folders

from .real import cgroups_of, sandboxes_of


@dataclass
class Traces:
    processes: dict[int, str] = field(default_factory=dict[int, str])  # pid -> when it began: a pid may be given again
    memory_bytes: int = 0
    cgroups: list[str] = field(default_factory=list[str])
    files: list[str] = field(default_factory=list[str])
    sockets: list[str] = field(default_factory=list[str])
    held: list[str] = field(default_factory=list[str])  # deleted files and memory that others still hold open

    def alive(self) -> list[int]:
        return [pid for pid, began in self.processes.items() if _began(pid) == began]


def traces_of(data: Path, sandbox: str) -> Traces:
    named = [pid for pid, command in sandboxes_of(data).items() if sandbox in command]
    processes = {pid: began for pid in _with_descendants(named) if (began := _began(pid))}
    folders = {data, find_folders(data).run}
    return Traces(
        processes=processes,
        memory_bytes=sum(_resident_bytes(pid) for pid in processes),
        cgroups=[c for c in cgroups_of(data) if sandbox in c],
        files=[str(f) for folder in folders for f in folder.rglob("*") if sandbox in f.name],
        sockets=[line for line in Path("/proc/net/unix").read_text().splitlines() if sandbox in line],
        held=[link for link in _descriptors_of_others(set(processes)) if sandbox in link],
    )


def _with_descendants(pids: list[int]) -> set[int]:
    children: dict[int, list[int]] = {}
    for pid in _pids():
        if fields := _stat(pid):
            children.setdefault(int(fields[1]), []).append(pid)
    found, waiting = set[int](), list(pids)
    while waiting:
        found.add(pid := waiting.pop())
        waiting += children.get(pid, [])
    return found


def _descriptors_of_others(but: set[int]) -> Iterator[str]:
    for pid in _pids():
        try:
            links = list(Path(f"/proc/{pid}/fd").iterdir()) if pid not in but else []
        except OSError:
            continue
        for link in links:
            try:
                yield str(link.readlink())
            except OSError:
                continue


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _stat(pid: int) -> list[str]:
    """From the state on; the name before it may contain anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _began(pid: int) -> str:
    fields = _stat(pid)
    return fields[19] if fields and fields[0] != "Z" else ""


def _resident_bytes(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[21]) * 4096 if fields else 0
