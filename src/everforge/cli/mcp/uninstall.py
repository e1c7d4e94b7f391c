"""`everforge mcp uninstall`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..options import Json
from .clients.choosing import Claude, Clients, Config, Goose, Project, Windsurf
from .install import NAME


def uninstall(
    clients: Clients = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="The entry to take out.")] = NAME,
    config: Config = None,
    project: Project = False,
    claude: Claude = False,
    goose: Goose = False,
    windsurf: Windsurf = False,
    json: Json = False,
) -> None:
    """Take `everforge mcp serve` out of the configuration files of AI tools again.

    A file that nobody has changed since becomes what it was before, byte by byte. A backup is left beside it.

    Example: everforge mcp uninstall claude-desktop
    """
    from ..tables import print_json
    from .clients.catalogue import CLIENTS
    from .clients.changes import carry_out, plan_uninstall
    from .clients.choosing import chosen, files
    from .clients.telling import told, words

    paths = files(chosen(clients, claude, goose, windsurf), config, project)
    plans = [plan_uninstall(CLIENTS[one], path, name) for one, path in paths.items()]  # all are looked at before the first is written
    done: list[dict[str, Any]] = []
    for plan in plans:
        result, backup = carry_out(plan, lambda plan=plan: plan_uninstall(plan.client, plan.found.path, name))
        done.append(told(result, backup, []))
        if not json:
            words(done[-1])
    if json:
        print_json(done[0] if len(done) == 1 else done)
