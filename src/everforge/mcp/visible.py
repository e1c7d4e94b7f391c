"""Text of a machine that is safe to show. Each character gives way to one other, so that positions in the text stay what they were. No I/O."""

from __future__ import annotations

import re

NOT_A_CHARACTER = "\ufffd"  # for half of a character, which no client could read
_HALVES = re.compile("[\ud800-\udfff]")
_TURNS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))  # show text in another order than it has
_PICTURES = (
    {code: 0x2400 + code for code in range(0x20)}
    | {0x7F: 0x2421}
    | {code: ord(NOT_A_CHARACTER) for code in (*range(0x80, 0xA0), *_TURNS)}
)  # fmt: skip
_ONE_LINE = {code: picture for code, picture in _PICTURES.items() if code != 0x85} | {0x85: 0x2424, 0x2028: 0x2424, 0x2029: 0x2424}
_SEVERAL_LINES = {code: picture for code, picture in _PICTURES.items() if chr(code) not in "\t\n\r"}


def whole(text: str) -> str:
    """Without halves of characters: as UTF-8 has no way to write them, one would spoil all of the message that it is in."""
    return text if text.isascii() else _HALVES.sub(NOT_A_CHARACTER, text)


def visible(text: str) -> str:
    """What a terminal would obey, as pictures of it, since a client may print it in one; and nothing that would show text in a false order."""
    return whole(text).translate(_SEVERAL_LINES)


def line(text: str) -> str:
    """The same for what stands in one line, as a name does: it begins no second one."""
    return whole(text).translate(_ONE_LINE)
