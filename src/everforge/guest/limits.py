"""What everything of the user's may take: rlimits of each process, and how much an instruction may say."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from dataclasses import dataclass, fields

MIB = 1024 * 1024
# Thread stacks, arenas and mapped libraries take address space that is never memory: about 240 MB with numpy, pandas, scipy and matplotlib loaded.
ADDRESS_SPACE_RESERVE_MB = 512
OWN_SHARE = 0.97  # of the machine's memory for one process: a MemoryError in it comes before the guard that watches the sum has to kill
SPEECH_CEILING = 12 * MIB  # a message of the link holds 16 MiB, traceback and note included


@dataclass(frozen=True, slots=True)
class GuestLimits:
    """0 means: not limited here. Names are those of `Setup.limits`."""

    memory_mb: int = 0  # of all the user's processes together: watched by `memory.MemoryGuard`, and a bound for each of them
    processes: int = 0  # processes and threads together, as the kernel counts them
    open_files: int = 0  # per process
    file_size_mb: int = 0  # of a single file
    output_bytes_max: int = 64 * MIB  # per instruction, stdout, stderr and displays together; the rest is dropped and counted
    result_bytes_max: int = 8 * MIB  # value and data of one end, as they are encoded
    display_bytes_max: int = 8 * MIB  # one rich output, as it is encoded
    line_bytes_max: int = 64 * 1024  # longer lines come in pieces

    def changed(self, values: Mapping[str, int]) -> GuestLimits:
        """These limits with `values` in place of the old ones; names that this guest does not know are left out (a newer keeper)."""
        defaults = GuestLimits()
        merged: dict[str, int] = {f.name: getattr(self, f.name) for f in fields(self)}
        merged.update({name: max(0, value) for name, value in values.items() if name in merged})
        for name in ("output_bytes_max", "result_bytes_max", "display_bytes_max", "line_bytes_max"):
            merged[name] = merged[name] or getattr(defaults, name)  # what is said is always bounded
        for name in ("result_bytes_max", "display_bytes_max"):
            merged[name] = min(merged[name], SPEECH_CEILING)
        return GuestLimits(**merged)

    def rlimits(self) -> list[tuple[int, int]]:
        """Pairs of resource and value, only those that are limited."""
        wanted = [
            (resource.RLIMIT_AS, (self.memory_mb + ADDRESS_SPACE_RESERVE_MB) * MIB if self.memory_mb else 0),
            (resource.RLIMIT_NPROC, self.processes),
            (resource.RLIMIT_NOFILE, self.open_files),
            (resource.RLIMIT_FSIZE, self.file_size_mb * MIB),
        ]
        return [(which, value) for which, value in wanted if value]

    def apply(self) -> None:
        """To the calling process and whatever it starts. A hard limit already lower than asked stays as it is: only a new process can have more."""
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file of a crashed interpreter would eat the machine's disk
        for which, value in self.rlimits():
            value = _within_hard(which, value)
            resource.setrlimit(which, (value, value))
        self.fit_address_space()

    def fit_address_space(self) -> None:
        """The soft limit follows what this process has mapped but does not use, so that a MemoryError comes when its *memory* reaches its share.

        Only address space can be limited in every sandbox (RLIMIT_DATA does not count mappings in gVisor).
        """
        if not self.memory_mb:
            return
        with open("/proc/self/statm", "rb") as f:
            mapped_pages, used_pages = map(int, f.read().split()[:2])
        unused = max(0, mapped_pages - used_pages) * resource.getpagesize()
        hard = _within_hard(resource.RLIMIT_AS, (self.memory_mb + ADDRESS_SPACE_RESERVE_MB) * MIB)
        resource.setrlimit(resource.RLIMIT_AS, (min(hard, int(self.memory_mb * OWN_SHARE) * MIB + unused), hard))


def _within_hard(which: int, value: int) -> int:
    hard = resource.getrlimit(which)[1]
    return value if hard == resource.RLIM_INFINITY else min(value, hard)
