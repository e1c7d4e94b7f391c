"""`everforge serve` and `everforge settings`: the server's own program takes the place of this one, or is asked. The command line itself knows
machines only as a client does."""

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
    sys.stdout.flush()
    os.execv(sys.executable, _words("serve", host=host, port=port, data=data, config=config))


def settings(
    data: Annotated[Path | None, typer.Option(help="Folder of the machines.")] = None,
    config: Annotated[Path | None, typer.Option(help="Settings. [default: everforge.toml in the data folder]")] = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Every setting of the server, its value, and where it comes from.

    Example: EVERFORGE_IDLE_SECONDS=60 everforge settings
    """
    import subprocess

    done = subprocess.run(_words("settings", data=data, config=config, json=json or None), stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="")
    raise typer.Exit(done.returncode)


def _words(command: str, **options: object) -> list[str]:
    words = [word for name, value in options.items() if value is not None for word in ([f"--{name}"] if value is True else [f"--{name}", str(value)])]
    return [sys.executable, "-m", "everforge.server", command, *words]
