"""What the two formats of configuration files, JSON and YAML, can both do. No I/O: texts in, texts out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

Fields = Mapping[str, object]  # of an entry, in the order in which they are written
BY_HAND = "it is written in a way that cannot be changed here with certainty"


class Format(Protocol):
    """Each of them is a module."""

    NAME: str
    BYTES_MAX: int  # of a file; a longer one takes longer than anybody waits

    def entries(self, text: str, section: str) -> dict[str, object]:
        """What stands in the section, by name. Broken when the text cannot be read, or when the section is something else than a set of entries."""
        ...

    def put(self, text: str, section: str, name: str, fields: Fields, initial: Fields) -> str:
        """With an entry of that name that has these fields; `initial` is for a new one alone, since its owner may change it later.

        An entry that has them already is left as it is, byte by byte. Everything else stays as it is in any case.
        """
        ...

    def drop(self, text: str, section: str, name: str) -> str:
        """Without the entry of that name, and without the section when nothing is left in it."""
        ...

    def liberty(self, text: str) -> int | None:
        """Where something first is that strict readers of the format refuse."""
        ...
