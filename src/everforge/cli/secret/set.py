"""`everforge secret set`."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from ..options import Json, among


def set_(
    name: Annotated[str, typer.Argument(help="The environment variable in which machines find a placeholder.")],
    host: Annotated[list[str], typer.Option(metavar="HOST[:PORT]", help="Where it is put in, over TLS alone. Repeatable.")],
    header: Annotated[str | None, typer.Option(help="A header that is put in by itself, {} where the value goes: 'X-Api-Key: {}'.")] = None,
    into: Annotated[list[str] | None, typer.Option(metavar="PLACE", help="Beside headers: body, url. Repeatable.")] = None,
    json: Json = False,
) -> None:
    """Give machines the use of a secret. Its value is read from standard input, and asked for at a terminal: a command line is seen by others.

    Machines see a placeholder. Where it stands in a request to the host, the value takes its place outside; in what comes back it is made unreadable.

    Example: everforge secret set API_KEY --host api.example.com < key.txt
    """
    from everforge.wire import api

    from ..connection import connected
    from ..tables import print_json

    among(api.Place, "--into", into or [])
    value = _value()
    with connected() as server:
        made = server.secrets.set(name, value, hosts=host, header=header, places=cast("Any", into))
    if json:
        print_json(made)
        return
    print(f"Machines find {made.placeholder} in ${made.name}; the value goes to {', '.join(made.hosts)} and nowhere else.")


def _value() -> str:
    import sys

    from everforge.wire.errors import InvalidInput

    if sys.stdin.isatty():
        from getpass import getpass

        return getpass("Value: ")
    try:
        return sys.stdin.buffer.read(1024 * 1024).decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise InvalidInput(
            "what came on standard input is not text: a secret's value is 8 to 4096 characters of ASCII, so give bytes as base64"
        ) from None
