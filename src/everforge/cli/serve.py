"""`everforge serve` and `everforge settings`: the server's own program takes the place of this one. The command line itself knows machines only as a
client does."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen at. [default: 127.0.0.1, which only this computer reaches]")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen at; 0 picks a free one. [default: 8787]")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of the machines. [default: EVERFORGE_DATA, or ~/.local/share/everforge]")] = None,
    config: Annotated[Path | None, typer.Option(help="Settings. [default: everforge.toml in the data folder]")] = None,
) -> None:
    """Run the server until Ctrl-C. Prints `ready http://...` when it answers.

    Example: everforge serve --port 0
    """
    _become("serve", host=host, port=port, data=data, config=config)


def settings(
    data: Annotated[Path | None, typer.Option(help="Folder of the machines.")] = None,
    config: Annotated[Path | None, typer.Option(help="Settings. [default: everforge.toml in the data folder]")] = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Every setting of the server, its value, and where it comes from.

    Example: EVERFORGE_IDLE_SECONDS=60 everforge settings
    """
    _become("settings", data=data, config=config, json=json or None)


def _become(command: str, **options: object) -> None:
    words = [word for name, value in options.items() if value is not None for word in ([f"--{name}"] if value is True else [f"--{name}", str(value)])]
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "everforge.server", command, *words])
