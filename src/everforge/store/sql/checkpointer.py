"""Copies the log into the database, in a thread and on a connection of its own, so that no write has to wait for it."""

from __future__ import annotations

import logging
import sqlite3
import threading

from .sqlite import READER_CACHE_KB, Database, translate
from .writer import Writer

log = logging.getLogger(__name__)


class Checkpointer:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._closing = False
        self._connection = database.connect(cache_kb=READER_CACHE_KB)
        self._thread = threading.Thread(target=self._run, name="store-checkpointer", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Call it when the writer has stopped: what is left in the log is copied, and the log emptied."""
        self._closing = True
        self._writer.wants_checkpoint.set()
        self._thread.join()
        self._copy("TRUNCATE")
        self._connection.close()

    def _run(self) -> None:
        wanted = self._writer.wants_checkpoint
        while wanted.wait() and not self._closing:
            wanted.clear()
            self._copy("PASSIVE")

    def _copy(self, mode: str) -> None:
        try:
            self._database.checkpoint(self._connection, mode)
        except sqlite3.Error as e:  # a full disk, mostly: the log still has everything, and the next one tries again
            log.warning("the log of the database could not be copied into it: %s", translate(e, self._database.path))
