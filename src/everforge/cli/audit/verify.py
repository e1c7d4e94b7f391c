"""`everforge audit verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..options import Json

if TYPE_CHECKING:
    from everforge.wire.audit import AuditHead

EXIT_BROKEN = 1


def verify(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="One that `everforge audit export` wrote. [default: the server's]")] = None,
    kept: Annotated[str | None, typer.Option(metavar="NUMBER:HASH", help="What this printed before: it must still be in the log.")] = None,
    part: Annotated[bool, typer.Option("--part", help="The entries of one account will do: what can be told from them.")] = False,
    json: Json = False,
) -> None:
    """Check the audit log: every entry's hash covers the one before, so that none can be changed, taken away or moved unseen.

    The owner of the server checks the whole log. Others see their own entries, and check these with --part: changes show, missing entries do not.

    Prints the number and hash of the last entry: keep them elsewhere. Exit code 1, and the first entry that is not sound, when somebody was at it.

    Example: everforge audit verify
    """
    from everforge.wire.audit import Chain, ChainBroken

    from ..connection import connected
    from ..failures import local
    from ..tables import print_json
    from .files import checked

    try:
        if file is not None:
            with local(file):
                found = checked(file, _head(kept), part)
        else:
            with connected() as server:
                check = server.audit.verify_part if part and server.audit.head() is None else server.audit.verify
                found = check(kept=_head(kept))
    except ChainBroken as e:
        print_json({"sound": False, "number": e.number, "reason": e.reason}) if json else print(f"not sound: {e}")
        raise typer.Exit(EXIT_BROKEN) from None
    whole, last = isinstance(found, Chain), found.head
    if json:
        print_json({"sound": True, "whole": whole, "entries": found.count, "number": last.number, "hash": last.hash})
    else:
        how = f"sound: {found.count} entries" if whole else f"sound as far as one account can tell: {found.count} entries"
        print(f"{how}, the last is {last.number}:{last.hash}")


def _head(text: str | None) -> AuditHead | None:
    from everforge.wire.audit import AuditHead

    if text is None:
        return None
    number, _, hash = text.partition(":")
    if not number.isdecimal() or len(number) > 18 or not hash:
        raise typer.BadParameter("give the number and the hash as they were printed, as 1234:5f3a...", param_hint="--kept")
    return AuditHead(number=int(number), hash=hash)
