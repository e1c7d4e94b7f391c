"""What could stand at a place of some code, by what the live objects say of themselves."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# IPython is not typed.

from __future__ import annotations

import json
from typing import Any, NamedTuple

from IPython.core.completer import provisionalcompleter, rectify_completions

MATCHES_MAX = 500  # nobody reads more
BYTES_MAX = 48 * 1024  # of all of them, as they are encoded: they travel in one record


class Completion(NamedTuple):
    matches: list[str]
    start: int  # what of the code each of them replaces, in characters
    end: int


def complete(shell: Any, code: str, cursor: int) -> Completion:
    with provisionalcompleter():
        found = list(rectify_completions(code, shell.Completer.completions(code, cursor)))
    if not found:
        return Completion([], cursor, cursor)
    matches: list[str] = []
    left = BYTES_MAX
    for text in dict.fromkeys(one.text for one in found):
        left -= len(json.dumps(text)) + 1
        if left < 0 or len(matches) == MATCHES_MAX:
            break
        matches.append(text)
    return Completion(matches, found[0].start, found[0].end)
