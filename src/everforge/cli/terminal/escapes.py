"""What of a machine's output may reach a terminal. Colours and small movements may; what makes a terminal answer, set a title or fill the clipboard
may not: the answer would be typed at the prompt as if by its user."""

from __future__ import annotations

import re

HELD_CHARACTERS_MAX = 4096  # of a sequence whose end has not come; what is longer is none

_TOKEN = re.compile(
    r"(?P<kept>\x1b\[[0-9;:]*[mABCDEFGJK])"
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # other control sequences: questions, modes
    r"|\x1b[\]PX^_][^\n\x07\x1b]*(?:\x07|\x1b\\)"  # titles, clipboards, programs for the terminal
    r"|(?P<held>\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\n\x07\x1b]*\x1b?|[ -/]*)?\Z)"  # its end may come yet
    r"|\x1b(?:[ -/]*[0-~])?"  # the short ones; and a lone escape
    r"|[\x00-\x06\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\ud800-\udfff]"  # all other controls but \a \b \t \n \r, and what cannot be encoded
)


class Escapes:
    """One for all that reaches a terminal, since a sequence begun in one stream could be finished in another."""

    def __init__(self) -> None:
        self._held = ""

    def pass_on(self, text: str) -> str:
        if not self._held and text.isprintable():
            return text
        text, self._held = self._held + text, ""
        return _TOKEN.sub(self._judge, text)

    def _judge(self, found: re.Match[str]) -> str:
        if found["held"] is not None and len(found["held"]) <= HELD_CHARACTERS_MAX:
            self._held = found["held"]
        return found["kept"] or ""
