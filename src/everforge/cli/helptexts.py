"""What `--help` says, made ahead by tools/make_help.py: to load every command only to describe it takes longer than to read it."""

from __future__ import annotations

from collections.abc import Sequence

FILE = "help.txt"  # beside this one
MARK = "\f\n"  # between the texts


def help_of(words: Sequence[str]) -> str | None:
    """Of a command that is named with `--help` behind it, or of a group that is named without the command that it wants. None: that was not asked."""
    asked = bool(words) and words[-1] in ("-h", "--help")
    name = " ".join(("everforge", *(words[:-1] if asked else words)))
    text = _texts().get(name)
    return text if asked or (text is not None and text.startswith(f"Usage: {name} [OPTIONS] COMMAND ")) else None


def _texts() -> dict[str, str]:
    """By the words that name the command, which stand behind `Usage:` in each."""
    with open(__file__.removesuffix("helptexts.py") + FILE, encoding="utf-8") as file:
        texts = file.read().split(MARK)
    return {_name(text): text for text in texts}


def _name(text: str) -> str:
    return text.partition(" [OPTIONS]")[0].removeprefix("Usage: ")
