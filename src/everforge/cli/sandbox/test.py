"""`everforge sandbox test`."""

from __future__ import annotations

from typing import Annotated

import typer


def test(json: Annotated[bool, typer.Option("--json", help="Answer (and refuse) as JSON, for programs.")] = False) -> None:  # noqa: PT028 - no test of pytest's
    """Will it harm my computer? Harmless attacks are made in a new machine, and what came of each is told in plain words.

    Uses the server that was given or that is running here, and says which; when there is none, one is started for this and removed afterwards.
    The exit code is 0 when every attack failed, and 1 when one got through or could not be made.

    Example: everforge sandbox test
    """
    from ..failures import say
    from ..tables import print_json
    from .examination import examine
    from .picture import show

    found = examine(lambda text: None if json else say(f"everforge: {text}"))
    print_json(found.for_programs()) if json else show(found)
    raise typer.Exit(0 if found.held else 1)
