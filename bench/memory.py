"""What processes take of the host's memory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

MB = 1024 * 1024


def pss_mb(pids: Iterable[int]) -> float:
    """Proportional set size: private pages, and of each shared page its share."""
    return sum(_rollup(pid, ("Pss:",)) for pid in pids)


def uss_mb(pids: Iterable[int]) -> float:
    """Unique set size: what would be free if they ended."""
    return sum(_rollup(pid, ("Private_Clean:", "Private_Dirty:")) for pid in pids)


def rss_mb(pids: Iterable[int]) -> float:
    """Resident set size: every page in full, shared or not."""
    return sum(_rollup(pid, ("Rss:",)) for pid in pids)


def _rollup(pid: int, names: tuple[str, ...]) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(names)) / 1024
