"""Standard output, whose trouble is told from all other: a full disk or a reader who has gone is nobody's mistake, and gets no traceback."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

EXIT_NOT_WRITTEN = 1
EXIT_READER_GONE = 141  # as of a program that SIGPIPE ends


class NotWritten(Exception):
    """Not an OSError: nobody on the way is to take it for one of their own."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class _Output(io.BufferedWriter):
    """Not the file below it: an interrupt between what that one has written and its own end would have all of it written again."""

    def write(self, buffer: Any, /) -> int:
        try:
            return super().write(buffer)
        except OSError as error:
            raise NotWritten(error) from error

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            raise NotWritten(error) from error


@contextmanager
def answers() -> Generator[None]:
    """What is printed in the block is written when it ends, or the process ends with a sentence on stderr."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - closed by whoever started us
        yield
        return
    raw = io.FileIO(sys.stdout.fileno(), "wb", closefd=False)
    tty = sys.stdout.isatty()
    # What a machine's code prints may be what no encoding has: it is shown escaped, and is no reason to end.
    errors = "backslashreplace" if sys.stdout.errors == "strict" else sys.stdout.errors
    sys.stdout = io.TextIOWrapper(_Output(raw), encoding=sys.stdout.encoding, errors=errors, line_buffering=tty)
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # not at the interpreter's end, where it could only be a traceback
    except NotWritten as trouble:
        os.dup2(os.open(os.devnull, os.O_WRONLY), raw.fileno())  # for what the interpreter will try all the same
        if isinstance(trouble.error, BrokenPipeError):
            sys.exit(EXIT_READER_GONE)
        print(f"everforge: the answer could not be written: {(trouble.error.strerror or str(trouble)).lower()}", file=sys.stderr)
        sys.exit(EXIT_NOT_WRITTEN)
