"""The one thread that writes. It takes all that is waiting, applies it in one transaction, commits, and only then tells anyone (group commit)."""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from everforge.wire.errors import EverforgeError, KeyReused, QuotaExceeded, Refused

from .changes import Changes
from .sqlite import LOG_BYTES_HARD, LOG_BYTES_SOFT, PAGE_BYTES, WRITER_CACHE_KB, Database, translate
from .statements import Statements
from .syncer import Syncer

log = logging.getLogger(__name__)

GROUP_MAX = 256  # changes in one transaction: more would make the first wait for the last
WAITING_MAX = 1024  # changes that wait to be taken; beyond that, callers wait for their turn
LOOK_BYTES = 256 * 1024  # small beside LOG_BYTES_HARD
REFUSALS = (KeyReused, QuotaExceeded)  # found before anything was written
PAGES_PER_CHANGE = 6  # what one change costs in the log at least: its tables and their indexes


class _Write(NamedTuple):
    apply: Callable[[Changes], Any]
    durable: bool
    answer: asyncio.Future[Any]


class Writer:
    def __init__(self, database: Database, statements: Statements, syncer: Syncer, loop: asyncio.AbstractEventLoop) -> None:
        self._database = database
        self._statements = statements
        self._syncer = syncer
        self._loop = loop
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._room = asyncio.Semaphore(WAITING_MAX)
        self._closed = False
        self._log_bytes = 0  # a guess, upwards, of what was written since the last checkpoint, and
        self._unlooked_bytes = 0  # since the log's real size was looked at
        self.wants_checkpoint = threading.Event()
        self._connection = database.connect(cache_kb=WRITER_CACHE_KB)
        self._changes = Changes(self._connection, statements)
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    async def write(self, apply: Callable[[Changes], Any], *, durable: bool) -> Any:
        async with self._room:
            if self._closed:
                raise Refused("the store is closed")
            answer: asyncio.Future[Any] = self._loop.create_future()
            self._queue.put(_Write(apply, durable, answer))
            return await answer

    async def close(self) -> None:
        """Everything that was asked for before is done first."""
        self._closed = True
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        self._connection.close()

    # --- below: in the writer's thread ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while self._write_next():
            if self._unlooked_bytes > LOOK_BYTES:
                self._unlooked_bytes = 0
                if self._database.log_bytes() > LOG_BYTES_HARD:
                    self._copy_log()

    def _write_next(self) -> bool:
        """All that waits, as one group; False after the last. What was written is let go of before the next is waited for: it may be large."""
        first = self._queue.get()
        if first is None:
            return False
        group, is_last = self._gather(first)
        self._write_group(group)
        return not is_last

    def _gather(self, first: _Write) -> tuple[list[_Write], bool]:
        group = [first]
        while len(group) < GROUP_MAX and not self._queue.empty():  # nobody else takes from it
            write = self._queue.get()
            if write is None:
                return group, True
            group.append(write)
        return group, False

    def _write_group(self, group: list[_Write]) -> None:
        begun = 0
        while begun < len(group):
            part = group[begun:] if begun else group
            try:
                results = self._transaction(part)
            except BaseException as e:
                # One of them cannot be done. Rolled back as a whole; then each by itself, so that only the guilty fail.
                if len(part) == 1:
                    self._tell([(part[0].answer, None, translate(e, self._database.path))])
                else:
                    for write in part:
                        self._write_group([write])
                return
            self._answer(part, results)  # first: what is left to do here is done while they wake up
            self._count(len(results))
            begun += len(results)

    def _transaction(self, part: list[_Write]) -> list[Any]:
        """The results of as many as fit in one transaction; a refusal is the result of one that was refused."""
        changes, connection = self._changes, self._connection
        results: list[Any] = []
        try:
            connection.execute("BEGIN IMMEDIATE")
            for write in part:
                results.append(_applied(write, changes))
                if changes.is_full:
                    break
            changes.finish()
            # Before the commit: what it gives out must not come on top of too much that a power cut would take.
            self._syncer.before_commit(changes.positions, changes.instructions)
            connection.execute("COMMIT")
        except BaseException:
            changes.drop()
            if connection.in_transaction:
                _roll_back(connection)
            raise
        return results

    def _count(self, count: int) -> None:
        """So many were committed."""
        changes = self._changes
        self._syncer.committed(changes.positions, changes.instructions)
        self._count_log(count * PAGES_PER_CHANGE * PAGE_BYTES + 2 * changes.size_bytes)
        changes.keep()

    def _answer(self, part: list[_Write], results: list[Any]) -> None:
        answers: list[tuple[asyncio.Future[Any], Any, BaseException | None]] = []
        for write, result in zip(part, results, strict=False):
            if isinstance(result, REFUSALS):
                answers.append((write.answer, None, result))
            elif write.durable:
                self._syncer.after_sync(lambda error, answer=write.answer, result=result: self._tell([(answer, result, error)]))
            else:
                answers.append((write.answer, result, None))
        if answers:
            self._tell(answers)

    def _tell(self, answers: list[tuple[asyncio.Future[Any], Any, BaseException | None]]) -> None:
        try:
            self._loop.call_soon_threadsafe(_resolve, answers)
        except RuntimeError:  # the loop is closed: nobody waits any more
            log.debug("%d writes were done after their event loop had closed", len(answers))

    def _count_log(self, more_bytes: int) -> None:
        self._unlooked_bytes += more_bytes
        self._log_bytes += more_bytes
        if self._log_bytes > LOG_BYTES_SOFT:
            self._log_bytes = 0
            self.wants_checkpoint.set()

    def _copy_log(self) -> None:
        """While writes go on, the background never comes to the log's very end, and only then it begins anew. So pause, and copy the rest."""
        try:
            self._database.checkpoint(self._connection)
        except sqlite3.Error as e:
            log.warning("the log of the database could not be copied into it: %s", translate(e, self._database.path))


def _applied(write: _Write, changes: Changes) -> Any:
    try:
        return write.apply(changes)
    except REFUSALS as e:  # found before it had written anything, and common where clients repeat what was cut: the others need not begin again
        return e


def _roll_back(connection: sqlite3.Connection) -> None:
    try:
        connection.execute("ROLLBACK")
    except sqlite3.Error as e:  # SQLite has done it itself
        log.debug("rollback: %s", e)


def _resolve(answers: list[tuple[asyncio.Future[Any], Any, BaseException | None]]) -> None:
    for answer, result, error in answers:
        if answer.done():  # its caller was cancelled
            continue
        if error is None:
            answer.set_result(result)
        elif isinstance(error, Exception):
            answer.set_exception(error)
        else:
            answer.set_exception(EverforgeError(f"the store's writer failed: {error!r}"))
