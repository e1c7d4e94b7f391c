"""Variables of the environment that look like ours and are none. A misspelt one changes nothing and says nothing, and it may have been meant to close
a door: so whoever set it is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher

from everforge.wire.sentences import show

from .configuration import PREFIX, SETTINGS

OTHERS = (
    "BAIT",
    "CACHE",
    "DATA",
    "IMAGES",
    "MCP_CONVERSATION",
    "RUNSC",
    "STATE",
    "TOKEN",
    "URL",
)  # what else reads the environment: folders, the client, the MCP server, `sandbox test`
OF_TESTS = "TEST_"
NEAR = 0.6  # of 1, the same: near enough to be asked about
CLOSE = 0.75  # and to be taken for a slip: EGRES_MAX, ALLOW_HOST, MEMORY
TOLD_MAX = 20  # whoever has more of them has another plan with these names


@dataclass(frozen=True, slots=True)
class Stray:
    variable: str
    near: str | None  # what may have been meant
    is_close: bool  # it most likely was

    def __str__(self) -> str:
        told = f"; did you mean {self.near}?" if self.near else ": `everforge settings` lists what there is"
        return f"{show(self.variable)} in the environment is no setting{told}"


def strays(environment: Mapping[str, str]) -> list[Stray]:
    """The close ones first."""
    known = [name.upper() for name in SETTINGS] + list(OTHERS)
    return sorted(_strays(environment, known), key=lambda one: (not one.is_close, one.variable))[:TOLD_MAX]


def _strays(environment: Mapping[str, str], known: list[str]) -> Iterator[Stray]:
    for variable in environment:
        word = variable[len(PREFIX) :]
        if variable.upper().startswith(PREFIX) and not word.startswith(OF_TESTS) and not (word in known and variable.startswith(PREFIX)):
            alike, nearest = max((_likeness(word.upper(), one), one) for one in known)
            yield Stray(variable, PREFIX + nearest if alike >= NEAR else None, alike >= CLOSE)


def _likeness(word: str, known: str) -> float:
    """Up to 1, which is also the same words in another order."""
    if sorted(word.split("_")) == sorted(known.split("_")):
        return 1.0
    return SequenceMatcher(None, word[: 2 * len(known)], known, autojunk=False).ratio()
