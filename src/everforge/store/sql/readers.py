"""A few threads that read, each on its own connection: a read sees one moment of the database and waits for no write."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from everforge.wire.errors import Refused

from .sqlite import READER_CACHE_KB, Database, translate

T = TypeVar("T")

THREADS = 3
WAITING_MAX = 256  # reads under way or waiting for a thread; beyond that, callers wait for their turn


class Readers:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._room = asyncio.Semaphore(WAITING_MAX)
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._closed = False
        self._executor = ThreadPoolExecutor(THREADS, "store-reader", initializer=self._connect)

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        async with self._room:
            if self._closed:
                raise Refused("the store is closed")
            return await asyncio.get_running_loop().run_in_executor(self._executor, self._run, query)

    async def close(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._executor.shutdown)
        for connection in self._connections:
            connection.close()

    def _connect(self) -> None:
        self._local.connection = self._database.connect(cache_kb=READER_CACHE_KB, read_only=True)
        self._connections.append(self._local.connection)

    def _run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        connection: sqlite3.Connection = self._local.connection
        try:
            connection.execute("BEGIN")
            try:
                return query(connection)
            finally:
                connection.execute("COMMIT")
        except (sqlite3.Error, UnicodeError, OverflowError) as e:
            raise translate(e, self._database.path) from e
