"""`everforge mcp install`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..options import Json
from .clients.choosing import Claude, Clients, Config, Goose, Project, Windsurf

if TYPE_CHECKING:
    from .clients.catalogue import Client
    from .clients.changes import Plan

NAME = "everforge"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")  # clients make names of tools from it

WithToken = Annotated[bool, typer.Option("--with-token", help="Write the server's address and token into the file, which only you can read then.")]


def install(
    clients: Clients = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="What the client is to call it.")] = NAME,
    print_: Annotated[bool, typer.Option("--print", help="Change nothing: print what would be written, for you to paste.")] = False,
    config: Config = None,
    project: Project = False,
    with_token: WithToken = False,
    machine: Annotated[str | None, typer.Option(metavar="NAME", help="The machine to use; handed to `everforge mcp serve`.")] = None,
    conversation: Annotated[str | None, typer.Option(metavar="NAME", help="The conversation to go on with; handed on, too.")] = None,
    share: Annotated[Path | None, typer.Option(metavar="FOLDER", help="A folder here to copy files from and to; handed on, too.")] = None,
    claude: Claude = False,
    goose: Goose = False,
    windsurf: Windsurf = False,
    json: Json = False,
) -> None:
    """Let AI tools use machines: writes `everforge mcp serve` into their configuration files.

    Everything else in such a file stays as it is, comments too, and a backup is left beside it. Doing it again changes nothing.

    Example: everforge mcp install claude-desktop
    """
    if not _NAME.fullmatch(name):
        raise typer.BadParameter(f"{name!r} is not made of lower-case letters, digits, - and _, up to 64 of them", param_hint="--name")
    if with_token and project:
        raise typer.BadParameter("the file of a project is for others to see, and a token is not", param_hint="--with-token")

    from .clients.catalogue import CLIENTS
    from .clients.choosing import chosen, files
    from .clients.programs import serve_command

    paths = files(chosen(clients, claude, goose, windsurf), config, project)
    command = serve_command(machine, conversation, share)
    wanted = [_Wanted(CLIENTS[one], path, name, command, with_token, project) for one, path in paths.items()]
    _print(wanted, json) if print_ else _install(wanted, json)


class _Wanted:
    """One entry in one file."""

    def __init__(self, client: Client, path: Path, name: str, command: list[str], with_token: bool, project: bool) -> None:
        from .clients.environment import environment
        from .clients.files import Rights

        self.client, self.path, self.name = client, path, name
        env, self.notes = environment(client.title, with_token)
        self.fields = client.fields(command, env)
        self.rights = Rights(most=0o600) if with_token else Rights(new=0o644 if project else 0o600)
        if project:
            self.notes.append(f"{command[0]} is where this program lies on this computer: whoever shares the project needs it there, too")

    def plan(self) -> Plan:
        from ..failures import LocalTrouble
        from .clients.changes import plan_install

        try:
            return plan_install(self.client, self.path, self.name, self.fields, self.rights)
        except LocalTrouble as error:
            error.message += f"; `everforge mcp install {self.client.name} --print` shows what to add by hand"
            raise

    def whole(self) -> Mapping[str, object]:
        return {**self.client.starting(self.name), **self.fields}


def _install(wanted: list[_Wanted], as_json: bool) -> None:
    """All are looked at before the first is written."""
    from ..tables import print_json
    from .clients.changes import carry_out, is_here
    from .clients.telling import told, words

    done: list[dict[str, Any]] = []
    for one, here, plan in [(one, is_here(one.client, one.path), one.plan()) for one in wanted]:
        result, backup = carry_out(plan, one.plan)
        missing = [] if here else [f"{one.client.title} was not found on this computer: the file is there for when it is"]
        done.append(told(result, backup, [*missing, *one.notes, *result.notes]))
        if not as_json:
            words(done[-1])
    if as_json:
        print_json(done[0] if len(done) == 1 else done)


def _print(wanted: list[_Wanted], as_json: bool) -> None:
    from ..failures import say
    from ..tables import print_json

    shown: list[dict[str, Any]] = []
    for one in wanted:
        snippet = one.client.format.put("", one.client.section, one.name, one.whole(), {})
        shown.append({"client": one.client.name, "file": str(one.path), "section": one.client.section, "entry": one.whole(), "snippet": snippet})
        if not as_json:
            print(snippet, end="", flush=True)
            for note in (f"that belongs into {one.path}; where that has {one.client.section} already, into this", *one.notes):
                say(f"everforge: {note}")
    if as_json:
        print_json(shown[0] if len(shown) == 1 else shown)
