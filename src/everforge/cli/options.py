"""Options and arguments that many commands have, spelled once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, get_args

import typer

from .names import complete_names

Name = Annotated[str, typer.Argument(metavar="NAME", help="The machine.", autocompletion=complete_names)]
Json = Annotated[bool, typer.Option("--json", help="Answer (and refuse) as JSON, for programs.")]
Discard = Annotated[bool, typer.Option("--discard", help="Do not save what is there now: it is gone. For a machine that cannot be saved.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", metavar="KEY=VALUE", help="A tag; may be given several times.")]
Env = Annotated[list[str] | None, typer.Option("--env", metavar="KEY=VALUE", help="An environment variable; may be given several times.")]
Server = Annotated[
    str | None, typer.Option("--api-base-url", metavar="URL", help="The server's address. [default: EVERFORGE_URL, or the server used last or here]")
]
WHOLE_MAX = 2**53 - 1  # beyond it not every language, nor every reader of JSON, tells whole numbers apart
ExpiresAt = Annotated[str | None, typer.Option("--expires-at", metavar="TIME", help="When it ends by itself, as 2030-01-31T12:00:00Z.")]


def whole(value: int | None) -> int | None:
    """The callback of options that are whole numbers: one that would become another on the way is refused, in the words of narrower limits."""
    if value is not None and abs(value) > WHOLE_MAX:
        raise typer.BadParameter(f"Input should be {'less' if value > 0 else 'greater'} than or equal to {WHOLE_MAX if value > 0 else -WHOLE_MAX}")
    return value


def among(literal: object, option: str, words: Iterable[str | None]) -> None:
    """Raises typer.BadParameter for a word that is none of the Literal's; None: it was not given."""
    choices = get_args(literal)
    for word in words:
        if word is not None and word not in choices:
            raise typer.BadParameter(f"{word!r} is none of {', '.join(choices)}", param_hint=option)


def pairs(words: list[str] | None, option: str) -> dict[str, str] | None:
    """Of KEY=VALUE; None when none was given."""
    if not words:
        return None
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{word!r} is not KEY=VALUE", param_hint=option)
        found[key] = value
    return found
