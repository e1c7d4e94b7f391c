"""`python -m everforge.server`: the server's own command, which `everforge serve` and `everforge settings` start."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from pathlib import Path
from typing import Any

from everforge.folders import data_folder
from everforge.wire.errors import EverforgeError

from . import loop
from .configuration import Configuration, load

EXIT_REFUSED = 3


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
    flags: dict[str, Any] = {"host": options.host, "port": options.port}
    try:
        configuration = load(flags, data, options.config)
        if options.command == "settings":
            return _show(configuration, as_json=options.json)
        return _serve(configuration, data)
    except EverforgeError as e:
        print(f"everforge: {e.message}", file=sys.stderr)
        return EXIT_REFUSED
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="everforge serve")
    parser.add_argument("command", choices=["serve", "settings"])
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--json", action="store_true")
    return parser


def _serve(configuration: Configuration, data: Path) -> int:
    from everforge.accounts.service import Accounts

    from .serving import serve

    logging.basicConfig(level=logging.INFO, format="everforge: %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    for noisy in ("uvicorn", "alembic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)

    def ready(url: str, accounts: Accounts) -> None:
        print(f"ready {url}", flush=True)

    loop.run(serve(configuration, data, Lines(), ready))
    return 0


def _show(configuration: Configuration, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps([{"name": g.name, "value": g.value, "source": g.source} for g in configuration.given], indent=2))
        return 0
    width = max(len(g.name) for g in configuration.given)
    for given in configuration.given:
        value = "" if given.name == "smtp_url" and given.value else given.value
        print(f"{given.name:<{width}}  {value if value != '' else '(hidden)' if given.value else '-'}  ({given.source})")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
