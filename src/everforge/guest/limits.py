"""What everything of the user's may take: rlimits of each process, and how much an instruction may say."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from dataclasses import dataclass, fields

MIB = 1024 * 1024
ADDRESS_SPACE_RESERVE_MB = 256  # thread stacks, arenas and mapped libraries take address space that is never memory


@dataclass(frozen=True, slots=True)
class GuestLimits:
    """0 means: not limited here. Names are those of `Setup.limits`."""

    memory_mb: int = 0  # of one process as address space; of all together it is watched by `memory.MemoryGuard`
    processes: int = 0  # processes and threads together, as the kernel counts them
    open_files: int = 0  # per process
    file_size_mb: int = 0  # of a single file
    output_bytes_max: int = 64 * MIB  # per instruction, stdout, stderr and displays together; the rest is dropped and counted
    result_bytes_max: int = 8 * MIB  # value and data of one end, as they are encoded
    display_bytes_max: int = 8 * MIB  # one rich output, as it is encoded
    line_bytes_max: int = 64 * 1024  # longer lines come in pieces

    def changed(self, values: Mapping[str, int]) -> GuestLimits:
        """These limits with `values` in place of the old ones; names that this guest does not know are left out (a newer keeper)."""
        merged = {f.name: getattr(self, f.name) for f in fields(self)}
        merged.update({name: max(0, value) for name, value in values.items() if name in merged})
        for name in ("output_bytes_max", "result_bytes_max", "display_bytes_max", "line_bytes_max"):
            merged[name] = min(merged[name] or _DEFAULTS[name], _CEILINGS.get(name, merged[name] or _DEFAULTS[name]))
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
            hard = resource.getrlimit(which)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(which, (value, value))


_DEFAULTS: dict[str, int] = {f.name: f.default for f in fields(GuestLimits) if isinstance(f.default, int)}
_CEILINGS = {"result_bytes_max": 12 * MIB, "display_bytes_max": 12 * MIB}  # a message of the link holds 16 MiB, traceback and note included
