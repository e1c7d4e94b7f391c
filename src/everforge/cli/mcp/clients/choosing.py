"""Which clients, and which files of theirs, a command line means."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

NAMES = ("claude-desktop", "claude-code", "goose", "windsurf", "cursor", "vscode", "zed")  # told here, too: the catalogue is slow to load


def complete_clients(incomplete: str) -> list[str]:
    return [name for name in NAMES if name.startswith(incomplete)]


Clients = Annotated[
    list[str] | None,
    typer.Argument(metavar="[CLIENT]...", help=f"One or more of {', '.join(NAMES)}.", autocompletion=complete_clients, show_default=False),
]
Claude = Annotated[bool, typer.Option("--claude", "-c", help="As ForeverVM has it: claude-desktop.")]
Windsurf = Annotated[bool, typer.Option("--windsurf", "-w", help="As ForeverVM has it: windsurf.")]
Goose = Annotated[bool, typer.Option("--goose", "-g", help="As ForeverVM has it: goose.")]
Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Another file than the client's usual one.")]
Project = Annotated[bool, typer.Option("--project", help="The file of the project in this folder. Not all clients have one.")]


def chosen(clients: Sequence[str] | None, claude: bool, goose: bool, windsurf: bool) -> list[str]:
    """Each once, in the order in which they were named."""
    flags = [name for name, given in (("claude-desktop", claude), ("goose", goose), ("windsurf", windsurf)) if given]
    named = [*(clients or []), *flags]
    names = sorted(set(named), key=named.index)
    if not names:
        raise typer.BadParameter(f"name at least one of {', '.join(NAMES)}", param_hint="CLIENT")
    for name in names:
        if name not in NAMES:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(NAMES)}", param_hint="CLIENT")
    return names


def files(names: Sequence[str], config: Path | None, project: bool) -> dict[str, Path]:
    """By client."""
    from .catalogue import CLIENTS
    from .places import surroundings

    if config is not None and (project or len(names) > 1):
        raise typer.BadParameter("it is the file of one client, and takes the place of --project", param_hint="--config")
    without = next((name for name in names if project and CLIENTS[name].project is None), None)
    if without is not None:
        have = ", ".join(name for name in NAMES if CLIENTS[name].project is not None)
        raise typer.BadParameter(f"{CLIENTS[without].title} has no file in a project; those who do are {have}", param_hint="--project")
    if config is not None:
        return {names[0]: config.expanduser().absolute()}
    if project:
        return {name: Path.cwd() / str(CLIENTS[name].project) for name in names}
    here = surroundings()
    return {name: Path(CLIENTS[name].file(here)) for name in names}
