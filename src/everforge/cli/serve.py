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
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port to listen at; 0 picks a free one. [default: 8787]")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of the machines. [default: EVERFORGE_DATA, or ~/.local/share/everforge]")] = None,
    config: Annotated[Path | None, typer.Option(help="Settings. [default: everforge.toml in the data folder]")] = None,
    egress: Annotated[str | None, typer.Option(help="What new machines may reach: none, list, packages or public. [default: packages]")] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST:PORT", help="What machines may be allowed to reach in closed networks. Repeatable."),
    ] = None,
) -> None:
    """Run the server until Ctrl-C. Prints `ready http://...` when it answers.

    Example: everforge serve --port 0
    """
    sys.stdout.flush()
    os.execv(sys.executable, _words("serve", host=host, port=port, data=data, config=config, egress=egress, allow_host=allow_host))


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
    words: list[str] = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        for one in value if isinstance(value, list) else [value]:  # pyright: ignore[reportUnknownVariableType]
            if one is not None:
                words += [flag] if one is True else [flag, str(one)]  # pyright: ignore[reportUnknownArgumentType]
    return [sys.executable, "-m", "everforge.server", command, *words]
