"""`everforge webhook add`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import Json


def add(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where to, as https://example.org/hook.")],
    event: Annotated[
        list[str] | None, typer.Option(help="Several with commas between, or given several times. [default: all but instruction.ended]")
    ] = None,
    secret: Annotated[
        str | None, typer.Option(metavar="-", help="What to sign with, from standard input; asked for at a terminal. [default: one is made]")
    ] = None,
    json: Json = False,
) -> None:
    """Be told of events at an address, and print the secret that everything sent there is signed with, this once.

    Example: everforge webhook add https://example.org/hook --event machine.broken,limit.hit
    """
    from ..connection import connected
    from ..tables import print_json

    given = None if secret is None else _given(secret)
    events = None if event is None else [word for words in event for word in words.split(",")]
    with connected() as server:
        made = server.webhooks.add(url, events=events, secret=given)
    print_json(made) if json else print(f"{made.id}\t{made.secret}")


def _given(option: str) -> str:
    from ..asking import ask_secret

    if option != "-":  # and it is not repeated
        raise typer.BadParameter("others see a command line: give --secret - and the secret on standard input", param_hint="--secret")
    return ask_secret("Secret", "--secret")
