"""`python -m everforge.server`: the server's own command, which `everforge serve` and `everforge settings` start."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from everforge.folders import data_folder
from everforge.store.disk import FULL
from everforge.wire.errors import DiskFull, EverforgeError, InvalidInput

from . import address, loop
from .configuration import Configuration, load
from .environment import strays
from .welcome import welcome

EXIT_REFUSED = 3
EXIT_PIPE = 141  # as programs end that nobody reads any more


class Lines:
    """Progress for people who read a log."""

    def step(self, text: str) -> None:
        print(f"everforge: {text}", file=sys.stderr, flush=True)

    def count(self, done: int, total: int) -> None: ...

    def warn(self, text: str) -> None:
        self.step(text)


def main(argv: list[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    data = (options.data or data_folder()).expanduser().absolute()
    flags: dict[str, Any] = {"host": options.host, "port": options.port, "allow_hosts": options.allow_host, "egress": options.egress}
    try:
        if data.exists() and not data.is_dir():
            raise InvalidInput(f"{data} is a file, and machines need a folder: give another one with --data")
        configuration = load(flags, data, options.config)
        _look_for_strays(may_start=options.command == "serve")
        if options.command == "settings":
            return _show(configuration, as_json=options.json)
        elsewhere = data if options.data or os.environ.get("EVERFORGE_DATA") else None
        return _serve(configuration, data, elsewhere, wanted=options.welcome)
    except DiskFull as e:
        return _no_room(data, e.message)
    except EverforgeError as e:
        running = address.find(data)
        print(f"everforge: {f'a server of {data} is running already, at {running}' if running else e.message}", file=sys.stderr)
        return EXIT_REFUSED
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter tries once more at its end, and complains
        return EXIT_PIPE
    except OSError as e:
        if e.errno not in FULL:
            raise
        return _no_room(data, str(e))


def _no_room(data: Path, why: str) -> int:
    """Where machines alone fill it, one of them must go: its file has no name that could be deleted."""
    how = f"Free some megabytes on the disk of {data}, or end the `runsc-sandbox` process of a machine, which goes back to its last snapshot"
    print(f"everforge: {why}. {how}; then start the server again, and delete what takes the room", file=sys.stderr)
    return EXIT_REFUSED


def _look_for_strays(*, may_start: bool) -> None:
    """Raises InvalidInput where a server would start without a setting that it was most likely given."""
    found = strays(os.environ)
    if may_start and (close := [one for one in found if one.is_close]):
        raise InvalidInput(f"{close[0]} Nothing was started: give it its right name, or unset it")
    for one in found:
        print(f"everforge: {one}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="everforge serve")
    parser.add_argument("command", choices=["serve", "settings"])
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--allow-host", action="append")
    parser.add_argument("--egress")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--welcome", action="store_true")
    return parser


def _serve(configuration: Configuration, data: Path, elsewhere: Path | None, *, wanted: bool) -> int:
    from everforge.accounts.service import Accounts

    from .serving import serve

    logging.basicConfig(level=logging.INFO, format="everforge: %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    for noisy in ("uvicorn", "alembic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)

    def ready(url: str, accounts: Accounts) -> None:
        print(f"ready {url}", flush=True)
        if sys.stdout.isatty() or wanted:
            print(welcome(configuration.server, url, accounts.new_link().code, elsewhere), flush=True)

    loop.run(serve(configuration, data, Lines(), ready))
    return 0


def _show(configuration: Configuration, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps([{"name": g.name, "value": g.value, "source": g.source} for g in configuration.given], indent=2), flush=True)
        return 0
    width = max(len(g.name) for g in configuration.given)
    for given in configuration.given:
        value = "" if given.name == "smtp_url" and given.value else given.value
        print(f"{given.name:<{width}}  {value if value != '' else '(hidden)' if given.value else '-'}  ({given.source})")
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
