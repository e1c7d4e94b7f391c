"""`everforge repl`: a comfortable prompt on a machine, or what comes through a pipe."""

from __future__ import annotations

import inspect
import sys
from typing import Annotated

import typer


def repl(
    name: Annotated[str | None, typer.Argument(help="The machine. [default: a new one]")] = None,
    instruction_timeout_seconds: Annotated[float | None, typer.Option(min=0.001, help="How long each instruction may run.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Of a new machine: key=value; may be given several times.")] = None,
    others: Annotated[bool, typer.Option("--others", help="Show what other clients do on the machine, too.")] = False,
) -> None:
    """A prompt on a machine: history, several lines, completion, pictures; it finds its way back after a cut.

    Without a terminal it runs what comes on stdin, up to the first thing that raises, and ends with exit code 1 if something did.

    Example: everforge repl my-machine
    """
    tags = _tags(tag or [])
    if name is not None and tags:
        raise typer.BadParameter("a machine that is there already keeps its tags: leave out --tag", param_hint="--tag")
    if sys.stdin.isatty() and sys.stdout.isatty():
        import asyncio

        from .terminal.interactive import talk

        asyncio.run(talk(name, instruction_timeout_seconds, tags, others=others))
    else:
        from .terminal.piped import feed

        raise typer.Exit(feed(name, instruction_timeout_seconds, tags))


HELP_BELOW_MACHINE = inspect.cleandoc(repl.__doc__ or "").replace("Example: everforge repl", "Example: everforge machine repl")


def _tags(given: list[str]) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in given]
    if not all(equals and key for key, equals, _ in pairs):
        raise typer.BadParameter("a tag is written key=value", param_hint="--tag")
    return {key: value for key, _, value in pairs}
