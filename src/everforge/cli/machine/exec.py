"""`everforge machine exec`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ..options import Env, Json, Name, pairs

if TYPE_CHECKING:
    from pathlib import Path

    from everforge import Instruction

CODE_BYTES_MAX = 16 * 1024 * 1024  # from stdin; no server takes more in one request


def exec_(
    name: Name,
    code: Annotated[str, typer.Argument(metavar="CODE", help="Python code; - reads it from stdin.")],
    timeout_seconds: Annotated[
        float | None, typer.Option("--instruction-timeout-seconds", help="Interrupt it when it takes longer. [default: the server's]")
    ] = None,
    env: Env = None,
    interrupt: Annotated[bool, typer.Option("--interrupt", help="Interrupt what runs there now, instead of waiting behind it.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Print the instruction's number and do not wait for its end.")] = False,
    pictures: Annotated[str | None, typer.Option(metavar="DIR", help="Write pictures that it shows to files in this folder.")] = None,
    json: Json = False,
) -> None:
    """Run code in a machine. What it prints is printed as it comes, and then its value.

    Ctrl-C interrupts the instruction; a second one leaves at once, and the instruction goes on. The exit code is 0 when it ended well, 1 when
    it raised or took too long, 130 when it was interrupted. A sleeping machine is woken.

    Example: everforge machine exec first 'import time; time.strftime("%A")'
    """
    from ..connection import machine_named
    from ..tables import print_json

    text = _from_stdin() if code == "-" else code
    folder = _folder(pictures)
    with machine_named(name) as machine:
        options = {"timeout_seconds": timeout_seconds, "env": pairs(env, "--env"), "interrupt": interrupt}

        def give() -> Instruction:
            return machine.exec(text, **options)  # pyright: ignore[reportArgumentType] - by name

        if detach:
            number = give().number
            print_json({"machine_name": name, "instruction": number}) if json else print(number)
            return
        from .watching import watch

        raise typer.Exit(watch(machine, give, folder, json))


def _from_stdin() -> str:
    from ..failures import local

    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - closed by whoever started us
        raise typer.BadParameter("stdin is closed", param_hint="CODE")
    with local("stdin"):
        found = sys.stdin.buffer.read(CODE_BYTES_MAX + 1)
    if len(found) > CODE_BYTES_MAX:
        raise typer.BadParameter(f"stdin has more than {CODE_BYTES_MAX} bytes", param_hint="CODE")
    try:
        return found.decode("utf-8")
    except UnicodeDecodeError as e:
        raise typer.BadParameter(f"stdin is not UTF-8 text ({e.reason} at byte {e.start})", param_hint="CODE") from e


def _folder(pictures: str | None) -> Path | None:
    """Made before the code runs: afterwards would be too late to find that it cannot be."""
    if pictures is None:
        return None
    from pathlib import Path

    from ..failures import local

    with local(pictures):
        Path(pictures).mkdir(parents=True, exist_ok=True)
    return Path(pictures)
