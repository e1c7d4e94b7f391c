"""The command line. One file per command; what a command needs is imported when it runs, so that the start is quick."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from .answers import answers


def main() -> None:
    """Exit codes: 0 done; 1 a no as the answer, code that raised, or an answer that could not be written; 2 wrong usage; 3 refused or failed with
    a sentence on stderr; 4 the server is not reachable; 130 interrupted; 141 whoever read the answer has gone."""
    signal.signal(signal.SIGTERM, _stop)
    with answers():
        sys.exit(run(sys.argv[1:]))


def run(words: Sequence[str]) -> int:
    """One command line; the exit code."""
    from everforge.wire.errors import EverforgeError

    strange = next((word for word in words if not _is_text(word)), None)
    if strange is not None:
        from .failures import tell_not_utf8

        return tell_not_utf8(strange, _for_programs(words))
    try:
        return 0 if _quickly(words) else _patiently(words)
    except EverforgeError as error:
        from .failures import tell

        return tell(error, _for_programs(words))
    except KeyboardInterrupt:
        return 130


def _quickly(words: Sequence[str]) -> bool:
    """What people and scripts ask most often, without loading what it takes to read every other command line. Was it such a thing?"""
    if "_EVERFORGE_COMPLETE" in os.environ:  # a shell asks what could stand there
        return False
    if list(words) == ["--version"]:
        from everforge import __version__

        print(f"everforge {__version__}")
        return True
    if words[:2] == ["machine", "list"]:
        from .machine.listing import list_machines, read_words

        options = read_words(words[2:])
        if options is not None:
            list_machines(**options)
            return True
    return _help(words)


def _help(words: Sequence[str]) -> bool:
    """From the file that is made ahead of all of them."""
    from .helptexts import help_of

    text = help_of(words)
    if text is not None:
        print(text, end="")
    return text is not None


def _patiently(words: Sequence[str]) -> int:
    from typer import Abort
    from typer._click.exceptions import ClickException

    from .app import app
    from .failures import EXIT_INTERRUPTED, tell_usage

    if len(words) == 2 and words[0] in ("--install-completion", "--show-completion"):
        os.environ["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"  # a shell is named: typer is to believe it rather than look around
    try:
        return app(list(words), prog_name="everforge", standalone_mode=False) or 0
    except ClickException as error:
        return tell_usage(error, _for_programs(words))
    except Abort:  # Ctrl-D or a no, where a question was asked
        return EXIT_INTERRUPTED


def _is_text(word: str) -> bool:
    """Bytes that are no UTF-8 arrive as halves of surrogate pairs."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _for_programs(words: Sequence[str]) -> bool:
    return "--json" in (words[: words.index("--")] if "--" in words else words)


def _stop(*_: object) -> None:
    """Leave through the same doors as Ctrl-C, so that nothing half-made stays behind."""
    raise SystemExit(143)
