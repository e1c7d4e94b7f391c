"""The weight of JSON, before it is read: a few bytes can take a hundred times their size in memory, and seconds that others wait. No I/O."""

from __future__ import annotations

import re

VALUES_MAX = 200_000  # objects and texts of that number take some 50 MB and a tenth of a second
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)  # never looks back: one without an end goes to the end


def is_too_heavy(body: bytes) -> bool:
    """Whether it has more values than anybody needs. What stands in a text, such as code, weighs nothing."""
    if _values(body) <= VALUES_MAX:
        return False
    if body.count(b'",') - body.count(b'\\",') > VALUES_MAX:  # ends of texts; those within texts have a backslash
        return True
    bare, texts = _TEXT.subn(b"", body, VALUES_MAX + 1)
    return texts > VALUES_MAX or _values(bare) > VALUES_MAX


def _values(text: bytes) -> int:
    """How many there are, as their punctuation tells."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")
