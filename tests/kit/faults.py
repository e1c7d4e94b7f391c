"""Faults on request: the Nth call of a server to its engine, store or snapshots fails, with the error that it would really fail with.

The seams are the Protocols that the parts of a server are put together by, so nothing in the product knows of this. `Faults` hears every call, as
`machines.steps` hears every step: whoever listens to an undisturbed run has the list of what can fail. What the archive does, behind everything and when
there is time for it, is counted apart: else the Nth call would be another one in every run.
"""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from everforge.wire import errors
from everforge.wire.errors import EverforgeError

IO_ERROR = "[Errno 5] Input/output error"
FULL, FAILED = "DiskFull", "EverforgeError"

# What each call really raises: see the implementations. Those that are not here raise nothing that a caller would have to live with.
STORE_WRITES = ("create", "create_together", "commit", "prune_keys", "purge_deleted", "purge", "add_egress")
STORE_READS = ("machine", "find", "machines", "made_with_key", "end_position", "received", "unended", "instruction", "instructions", "outputs")
STORE_READS += ("accepted_with_key", "points", "referenced_snapshots", "snapshot_in_use", "is_head", "calls", "events")
STORE_READS += ("expiring", "usage", "displayed", "machines_with_unended", "images_in_use")
RAISED: Mapping[str, tuple[str, ...]] = {
    "engine.start": ("StartFailed",),
    "engine.restore": ("WakeFailed",),
    "engine.knows": ("WakeFailed",),
    "engine.survivors": ("SandboxLost",),  # no warden answers, and none can be started
    "sandbox.save": ("SaveFailed", FULL),
    "sandbox.destroy": ("SandboxLost",),
    "snapshots.begin": ("SaveFailed", FULL),
    "snapshots.finish": ("SaveFailed", FULL),
    "snapshots.open": ("SnapshotDamaged",),  # what cannot be read is taken for damaged
    "snapshots.verify_small": ("SnapshotDamaged",),
    "snapshots.verify_large": ("SnapshotDamaged",),
    "snapshots.delete": (FAILED,),
    "snapshots.pack": (FAILED,),
    "snapshots.sweep": (FAILED,),
    "snapshots.unpacked": (FAILED,),
    **{f"store.{name}": (FULL, FAILED) for name in STORE_WRITES},
    **{f"store.{name}": (FAILED,) for name in STORE_READS},
}
WRITES = frozenset(what for what, raised in RAISED.items() if FULL in raised)


@dataclass(frozen=True)
class Fault:
    what: str
    nth: int  # of these calls from now on; the first is 1
    error: str
    after: bool = False  # it was done all the same: only the answer is an error, as when a sync fails
    lasting: bool = False  # so does everything that writes, from then on

    def raised(self) -> EverforgeError:
        return getattr(errors, self.error)(f"{self.what}: {'no space left on the device' if self.error == FULL else IO_ERROR}")


class Faults:
    def __init__(self, *, of_archive: bool = False) -> None:
        """Of everything but what the archive calls; or of that alone."""
        self._of_archive = of_archive
        self.heard: list[str] = []
        self.struck = 0
        self.on_first: Callable[[], object] | None = None  # is told when the planned one strikes
        self._fault: Fault | None = None
        self._left = 0
        self._ailing: tuple[str, float, random.Random] | None = None

    def ail(self, prefix: str, share: float, seed: int) -> None:
        """From now on such a share of these calls fails, drawn from a seed."""
        self._ailing = prefix, share, random.Random(seed)

    def plan(self, fault: Fault) -> None:
        self._fault, self._left, self.struck = fault, fault.nth, 0

    def clear(self) -> int:
        """From now on nothing fails. How often something did."""
        self._fault = self._ailing = None
        return self.struck

    def forget(self) -> None:
        self.heard.clear()

    async def passed(self, what: str, call: Callable[[], Awaitable[Any]]) -> Any:
        if not self._is_meant():
            return await call()
        self.heard.append(what)
        if self._ailing is not None and what.startswith(self._ailing[0]) and self._ailing[2].random() < self._ailing[1]:
            raise EverforgeError(f"{what}: {IO_ERROR}")
        if not self._strikes(what):
            return await call()
        assert self._fault is not None
        fault = self._fault
        self.struck += 1
        if self.struck == 1 and self.on_first is not None:
            self.on_first()
        if fault.after:
            await call()
        raise fault.raised()

    def _is_meant(self) -> bool:
        task = asyncio.current_task()
        return (task is not None and task.get_name() == "archive") == self._of_archive

    def _strikes(self, what: str) -> bool:
        fault = self._fault
        if fault is None:
            return False
        if fault.lasting and self.struck:
            return what in WRITES
        if what != fault.what:
            return False
        self._left -= 1
        return self._left == 0


class Faulty:
    """A part of a server, or a sandbox, whose calls may fail."""

    def __init__(self, inner: Any, name: str, faults: Faults) -> None:
        self.inner = inner
        self._name = name
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            async def real() -> Any:
                return self._faulty(await found(*args, **kwargs))

            return await self._faults.passed(f"{self._name}.{name}", real)

        return call

    def _faulty(self, value: Any) -> Any:
        """Sandboxes are what engines give."""
        if hasattr(value, "destroy"):
            return Faulty(value, "sandbox", self._faults)
        if isinstance(value, dict) and self._name == "engine":
            return {id: Faulty(sandbox, "sandbox", self._faults) for id, sandbox in value.items()}
        return value


def faulty_parts(faults: Faults, **parts: Any) -> dict[str, Any]:
    """Those of a Forge, by their names, of which some may fail."""
    return {name: Faulty(part, name, faults) if name in ("engine", "store", "snapshots") else part for name, part in parts.items()}
