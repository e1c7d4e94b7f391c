"""What went wrong, told once: a sentence on stderr that says what to do, or JSON for programs, and the exit code that goes with it."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from everforge.wire.errors import EverforgeError
from everforge.wire.sentences import show

if TYPE_CHECKING:
    from typer._click.exceptions import ClickException

EXIT_RAISED = 1  # the machine's code did
EXIT_USAGE = 2
EXIT_REFUSED = 3
EXIT_UNREACHABLE = 4
EXIT_INTERRUPTED = 130

LONGER = "give it longer with --instruction-timeout-seconds"  # what was timed out
UNREACHED = ("Unreachable", "Uncertain", "ServerUnknown")


class LocalTrouble(EverforgeError):
    """A file of this computer, not of a machine."""

    code = "LocalTrouble"


@contextmanager
def local(path: object) -> Generator[None]:
    """What the operating system says about a file of this computer becomes a sentence that names it."""
    try:
        yield
    except OSError as e:
        raise LocalTrouble(f"{e.filename or path}: {(e.strerror or str(e)).lower()}") from e


def tell(error: EverforgeError, as_json: bool) -> int:
    """The exit code."""
    _tell({"code": error.code, "message": error.message, "retry": error.retry, "id": error.request_id, "details": error.details}, as_json)
    return EXIT_UNREACHABLE if error.code in UNREACHED else EXIT_REFUSED


def tell_usage(error: ClickException, as_json: bool) -> int:
    context: Any = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "everforge"
    message = error.format_message().rstrip(".")
    return _tell_wrong(message[:1].lower() + message[1:], command, as_json)


def tell_not_utf8(word: str, as_json: bool) -> int:
    """It is not guessed what was meant, and nothing else is sent in its place."""
    shown = os.fsencode(word).decode("utf-8", "replace")
    return _tell_wrong(f"{show(shown)} is not UTF-8", "everforge", as_json)


def _tell_wrong(message: str, command: str, as_json: bool) -> int:
    body: dict[str, Any] = {"code": "WrongUsage", "message": f"{message}: see `{command} --help`", "retry": "never", "id": None, "details": {}}
    _tell(body, as_json)
    return EXIT_USAGE


def _tell(body: dict[str, Any], as_json: bool) -> None:
    if as_json:
        from json import dumps

        say(dumps(body, default=str))
    else:
        say(f"everforge: {obeyed_by_none(body['message'])}")


def obeyed_by_none(message: str) -> str:
    """Lines that a terminal shows and does not obey, whatever was typed, or a server said."""
    from .tables import printable

    return "\n".join(map(printable, message.split("\n")))


def say(text: str, end: str = "\n") -> None:
    """On stderr, to whoever still listens."""
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison] - closed by whoever started us
        with suppress(OSError, ValueError):
            try:
                print(text, end=end, file=sys.stderr, flush=True)
            except RuntimeError:  # a signal came in the middle of another sentence, which holds the stream
                os.write(sys.stderr.fileno(), (text + end).encode("utf-8", "backslashreplace"))
