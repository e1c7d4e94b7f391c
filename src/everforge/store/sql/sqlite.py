"""All that is SQLite's alone: connections and their pragmas, syncing the log, checkpoints, and the translation of its errors."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError

from everforge.wire.errors import (
    AccountNameAlreadyExists,
    DiskFull,
    EmailAlreadyExists,
    EverforgeError,
    InvalidInput,
    KeyReused,
    NameTaken,
    StoreDamaged,
    WrongState,
)

BUSY_MS = 5_000  # only another process can make us wait: a backup, a person with a shell
WRITER_CACHE_KB = 16 * 1024
READER_CACHE_KB = 4 * 1024
PAGE_BYTES = 4096

# The log (WAL) is copied into the database in the background when it has grown by about the first, and by the writer itself, between two
# transactions, when it has nevertheless come to the second: so it is bounded.
LOG_BYTES_SOFT = 8 * 1024 * 1024
LOG_BYTES_HARD = 64 * 1024 * 1024
assert LOG_BYTES_SOFT * 4 <= LOG_BYTES_HARD


class Database:
    """One SQLite file in WAL mode."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log_path = path.with_name(path.name + "-wal")
        self._checkpointing = threading.Lock()
        self._named_log: int | None = None  # the inode of the log whose name is on the disk
        self.engine = sa.create_engine(sa.URL.create("sqlite", database=str(path)), poolclass=sa.NullPool)
        # We say BEGIN and COMMIT ourselves, also around DDL; the driver's own idea of transactions is older than both.
        event.listen(self.engine, "connect", _prepare)
        event.listen(self.engine, "begin", _begin)
        self.dialect: Dialect = SQLiteDialect_pysqlite(paramstyle="named")

    def connect(self, *, cache_kb: int, read_only: bool = False) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, cached_statements=256)
        _set_pragmas(connection)
        connection.execute(f"PRAGMA cache_size = -{cache_kb}")
        if read_only:
            connection.execute("PRAGMA query_only = 1")
        return connection

    def sync(self) -> None:
        """Everything committed survives a power cut when this returns.

        Commits run with synchronous=NORMAL: they are in the log file, which a killed server does not lose, but perhaps only in the kernel's memory.
        Syncing that file makes them durable. What a checkpoint has already moved out of it was synced by the checkpoint.
        """
        try:
            descriptor = os.open(self.log_path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            descriptor = None  # nothing was written since the last checkpoint
        if descriptor is not None:
            try:
                os.fsync(descriptor)
                named = os.fstat(descriptor).st_ino == self._named_log
            finally:
                os.close(descriptor)
            if named:
                return
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)  # a new file's name is in its folder, which is synced by itself
        finally:
            os.close(folder)
        self._named_log = self.log_path.stat().st_ino if descriptor is not None else None

    def log_bytes(self) -> int:
        """How far the log has grown. (When it begins anew its file keeps its size, but not more than LOG_BYTES_HARD of it.)"""
        try:
            return self.log_path.stat().st_size
        except FileNotFoundError:
            return 0

    def checkpoint(self, connection: sqlite3.Connection, mode: str = "PASSIVE") -> None:
        """Copy the log into the database, synced. One at a time: two would turn each other away."""
        with self._checkpointing:
            connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()


def _set_pragmas(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES_HARD}")
    connection.execute("PRAGMA trusted_schema = 0")


def _prepare(connection: Any, _: object) -> None:
    connection.isolation_level = None
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    connection.execute("PRAGMA journal_mode = WAL")
    _set_pragmas(connection)


def _begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def translate(error: BaseException, path: Path) -> BaseException:
    """An error of the database as one of ours; ours, and those that are bugs, stay what they are."""
    if isinstance(error, DBAPIError) and error.orig is not None:
        error = error.orig
    if isinstance(error, EverforgeError):
        return error
    if isinstance(error, OSError):
        return DiskFull(f"the disk under {path} is full") if error.errno in (errno.ENOSPC, errno.EDQUOT) else EverforgeError(f"{path}: {error}")
    if isinstance(error, sqlite3.IntegrityError):
        return _broken_rule(str(error))
    if isinstance(error, UnicodeError | OverflowError) or (isinstance(error, sqlite3.Error) and "binding parameter" in str(error)):
        return InvalidInput(f"a value cannot be stored: {error}")
    if isinstance(error, sqlite3.Error):
        return _failure(error, path)
    return error


def _broken_rule(message: str) -> EverforgeError:
    if "accounts.same_name" in message:
        return AccountNameAlreadyExists("there is an account of that name already; take another name")
    if "accounts.same_email" in message:
        return EmailAlreadyExists("there is an account with that address already")
    if "machines." in message and "UNIQUE" in message:
        return NameTaken("there is a machine of that name already")
    if "keys." in message and "UNIQUE" in message:
        return KeyReused("the idempotency key was used already")
    if "unended." in message and "UNIQUE" in message:
        return WrongState("an instruction of that number was accepted already")
    return InvalidInput(f"the database refuses it: {message}")


def _failure(error: sqlite3.Error, path: Path) -> EverforgeError:
    code = getattr(error, "sqlite_errorcode", None) or 0
    if code & 0xFF == sqlite3.SQLITE_FULL or code == sqlite3.SQLITE_IOERR_SHMSIZE or "disk is full" in str(error):
        return DiskFull(f"the disk under {path} is full: nothing was written")
    if code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreDamaged(f"the database {path} is damaged ({error}): restore it from a backup; the snapshots beside it are untouched")
    if code & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return StoreDamaged(f"the database {path} cannot be used ({error}): it, and the folder it is in, must belong to this user and be writable")
    return EverforgeError(f"the database {path} failed: {error}")
