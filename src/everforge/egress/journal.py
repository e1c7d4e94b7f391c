"""Attempts on their way to the record: gathered for a moment, written together, so that a machine that connects often costs little."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass

from everforge.signals import Signals
from everforge.store.base import MachineRecord
from everforge.store.egress import AttemptRecord, EgressBook
from everforge.wire.errors import EverforgeError
from everforge.wire.ids import MachineId

from .allowances import Allowances
from .attempts import Attempt

log = logging.getLogger(__name__)
GATHER_SECONDS = 0.2
RETRY_SECONDS = 5.0  # after a write that failed, as on a full disk
WAITING_MAX = 20_000  # attempts that a full disk keeps from being written; beyond that the newest are only counted


@dataclass(frozen=True, eq=False)
class Noted:
    """One time that an attempt was noted: what is noted again while it is being written must be written again."""

    attempt: Attempt


class Journal:
    """Of all machines of a server. What was noted waits here until it is written, and no shorter: a write that fails or is cut off loses nothing."""

    def __init__(self, book: EgressBook, keep: int, signals: Signals, allowances: Allowances) -> None:
        self._book = book
        self._keep = keep
        self.signals = signals
        self._allowances = allowances
        self._waiting: dict[tuple[MachineId, int], Noted] = {}
        self._writing = asyncio.Lock()
        self._last_number = 0
        self._stirred = asyncio.Event()
        self._dropped = 0
        self._task: asyncio.Task[None] | None = None

    def of(self, machine: MachineRecord) -> MachineJournal:
        return MachineJournal(self, machine)

    def number(self) -> int:
        """Each once, whichever machine it is for: a number for every machine would be kept for every machine there ever was."""
        self._last_number = max(time.time_ns() // 1000, self._last_number + 1)
        return self._last_number

    def note(self, machine: MachineId, number: int, attempt: Attempt) -> None:
        if len(self._waiting) >= WAITING_MAX and (machine, number) not in self._waiting:
            self._dropped += 1
            return
        self._waiting[machine, number] = Noted(attempt)
        self._stirred.set()
        if self._task is None:
            self._task = asyncio.create_task(self._write_always())

    async def flush(self) -> bool:
        """What was noted up to now is written when it returns; or else it is False, as on a full disk, and all of it waits."""
        async with self._writing:
            try:
                await self._allowances.record()
                await self._write()
                return True
            except EverforgeError as e:
                log.warning("what machines have tried to reach could not be recorded yet: %s", e.message)
            except Exception:
                log.exception("what machines have tried to reach could not be recorded yet")
            return False

    async def close(self) -> None:
        if self._task is not None:
            async with self._writing:  # a write that has begun comes to its end
                self._task.cancel()
            await asyncio.wait([self._task])
        await self.flush()

    async def _write(self) -> None:
        batch = dict(self._waiting)
        if batch:
            await self._book.note([_record(machine, number, noted.attempt) for (machine, number), noted in batch.items()], self._keep)
        for key, noted in batch.items():
            if self._waiting.get(key) is noted:
                del self._waiting[key]

    async def _write_always(self) -> None:
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            await asyncio.sleep(GATHER_SECONDS)
            if not await self.flush():
                await asyncio.sleep(RETRY_SECONDS)
                self._stirred.set()
            if self._dropped:
                log.warning("%d attempts of machines to reach something were not recorded: there were too many", self._dropped)
                self._dropped = 0


class MachineJournal:
    def __init__(self, journal: Journal, machine: MachineRecord) -> None:
        self._journal = journal
        self._machine = machine.id
        self._owner, self._name = machine.account, machine.name
        self._numbers: dict[int, int] = {}  # of attempts that have not ended

    def began(self, attempt: Attempt) -> None:
        number = self._numbers[id(attempt)] = self._journal.number()
        self._journal.note(self._machine, number, attempt)

    def ended(self, attempt: Attempt) -> None:
        attempt.ended_at = time.time()
        if id(attempt) in self._numbers:
            told = {"host": attempt.host, "port": attempt.port, "verdict": attempt.verdict, "why": attempt.why}
            self._journal.signals.tell("egress.attempt", account=self._owner, machine=self._name, **told)
        if (number := self._numbers.pop(id(attempt), None)) is not None:
            self._journal.note(self._machine, number, attempt)

    def met(self, limit: str) -> None:
        self._journal.signals.tell("limit.hit", account=self._owner, machine=self._name, limit=limit)


def _record(machine: MachineId, number: int, a: Attempt) -> AttemptRecord:
    return AttemptRecord(
        machine=machine,
        number=number,
        host=a.host,
        port=a.port,
        speech=a.speech,
        method=a.method,
        path=a.path,
        verdict=a.verdict,
        why=a.why,
        allowed_by=a.by,
        address=a.address,
        sent_bytes=a.sent_bytes,
        received_bytes=a.received_bytes,
        secrets=" ".join(a.secrets),
        began_at=a.began_at,
        ended_at=a.ended_at,
    )
