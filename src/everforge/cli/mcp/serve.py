"""`everforge mcp serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def serve(
    http: Annotated[bool, typer.Option("--http", help="Over HTTP, each client with its own token. [default: standard input and output]")] = False,
    host: Annotated[str | None, typer.Option(help="With --http, the address to listen at. [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="With --http, the port; 0 picks a free one. [default: 8788]")] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="With --http, a name that clients use for this computer. Repeatable.")
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option(
            envvar="EVERFORGE_MCP_CONVERSATION", show_envvar=False, help="Which machine to go on with. [default: one for each client and folder]"
        ),
    ] = None,
    machine: Annotated[str | None, typer.Option(metavar="NAME", help="Use this machine, and make it if it is not there.")] = None,
    share: Annotated[Path | None, typer.Option(metavar="FOLDER", help="A folder here that files may be copied from and to. Not with --http.")] = None,
    output_characters: Annotated[int, typer.Option(min=1000, max=1_000_000, help="Of output in one answer; the rest can be asked for.")] = 20_000,
) -> None:
    """Serve AI tools over the Model Context Protocol, until they leave or Ctrl-C. The client of such a tool starts it.

    Example: everforge mcp serve --http --port 8788
    """
    _check(http, host, port, allow_host, conversation, share)
    if not http:
        _tell_a_person()
    import asyncio
    import logging

    from everforge.mcp.calls import Settings

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")  # stdout is the protocol's
    settings = Settings(conversation, machine, share.expanduser() if share else None, output_characters)
    if http:
        from everforge.mcp.http import HOST, PORT, Place
        from everforge.mcp.http import serve as serve_http

        place = Place(host or HOST, PORT if port is None else port, allow_host or [])
        asyncio.run(serve_http(settings, place, lambda url: print(f"ready {url}", flush=True)))
    else:
        from everforge.mcp.stdio import serve as serve_stdio

        asyncio.run(serve_stdio(settings))


def _tell_a_person() -> None:
    """Whoever tries it by hand would see nothing at all: it speaks when it is spoken to, and in JSON."""
    import sys

    from ..failures import say

    if sys.stdin.isatty():
        say("everforge: this is an MCP server, and waits for messages of an AI tool on standard input; Ctrl-C ends it")
        say("everforge: `everforge mcp install CLIENT` lets an AI tool start it by itself, and `--http` serves it at an address")


def _check(http: bool, host: str | None, port: int | None, allow_host: list[str] | None, conversation: str | None, share: Path | None) -> None:
    if not http and (host is not None or port is not None or allow_host):
        raise typer.BadParameter("--host, --port and --allow-host are for --http")
    if http and conversation:
        raise typer.BadParameter(
            "over HTTP each client says which conversation it continues, in the header Everforge-Conversation", param_hint="--conversation"
        )
    if http and share is not None:
        raise typer.BadParameter("over HTTP no files of this computer are touched", param_hint="--share")
    if share is not None and not share.expanduser().is_dir():
        raise typer.BadParameter(f"{share} is not a folder", param_hint="--share")
