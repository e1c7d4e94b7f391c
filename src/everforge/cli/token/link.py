"""`everforge token link`."""

from __future__ import annotations

from ..options import Json


def link(json: Json = False) -> None:
    """Print a link that logs in once, on another computer, within a quarter of an hour. It shows a token that may what yours may.

    Example: everforge token link
    """
    from ..connection import connected
    from ..tables import print_json

    with connected() as server:
        made = server.tokens.link()
    print_json(made) if json else print(made.url)
