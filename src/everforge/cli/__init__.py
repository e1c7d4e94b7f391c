"""The command line. One file per command; what a command needs is imported when it runs, so that `--help` is quick."""

from __future__ import annotations

import signal
import sys

from .answers import answers

EXIT_REFUSED = 3


def main() -> None:
    """Exit codes: 0 done, 1 a no as the answer or one that could not be written, 2 wrong usage, 3 refused or failed with a sentence on stderr,
    130 interrupted, 141 whoever read the answer has gone."""
    with answers():
        _run()


def _run() -> None:
    if sys.argv[1:] == ["--version"]:
        from everforge import __version__

        print(f"everforge {__version__}")
        return

    from everforge.wire.errors import EverforgeError

    from .app import app

    signal.signal(signal.SIGTERM, _stop)
    try:
        app(prog_name="everforge")
    except EverforgeError as error:
        print(f"everforge: {error.message}", file=sys.stderr)
        sys.exit(EXIT_REFUSED)


def _stop(*_: object) -> None:
    """Leave through the same doors as Ctrl-C, so that nothing half-made stays behind."""
    raise SystemExit(143)
