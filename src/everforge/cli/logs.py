"""`everforge machine logs`: the tape for people, and for programs that go on where they stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Name, whole


def logs(
    name: Name,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes, through restarts of the server, until Ctrl-C.")] = False,
    after: Annotated[int | None, typer.Option(callback=whole, min=-1, help="Begin behind this position. [default: -1, from the beginning]")] = None,
    instruction: Annotated[int | None, typer.Option(callback=whole, min=0, help="Of this instruction alone; with --follow, until it ends.")] = None,
    output: Annotated[bool, typer.Option("--output", help="Only what was printed: no code, values or tracebacks.")] = False,
    positions: Annotated[bool, typer.Option("--positions", help="Before each line its position, for --after; `+` where it goes on.")] = False,
    cursor_file: Annotated[
        Path | None, typer.Option(help="Remember here what was printed, and go on behind it the next time: no line twice, none left out.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The entries as they are, one a line; `cursor` is what to give as --after.")] = False,
) -> None:
    """What a machine was given, what it said, and how that ended.

    Example: everforge machine logs my-machine --follow
    """
    from .terminal.follower import Follower, Wanted

    Follower(name, Wanted(follow=follow, after=after, instruction=instruction, output=output, positions=positions, json=json), cursor_file).run()
