"""What callers may ask of accounts: every value from outside is checked here."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Any, cast

from everforge.wire.errors import InvalidInput
from everforge.wire.sentences import show

from .identity import SCOPES

_ACCOUNT_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]{2,15}")  # ForeverVM's lengths
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_EMAIL = re.compile(rf"[a-zA-Z0-9!#$%&'*+/=?^_`{{|}}~.-]{{1,64}}@{_LABEL}(?:\.{_LABEL})*")
EMAIL_LENGTH_MAX = 254
TOKEN_NAME_LENGTH_MAX = 100
TAGS_MAX = 16
TAG_BYTES_MAX = 256  # as a machine's, of a name and of a value


def account_name(value: object) -> str:
    if not isinstance(value, str) or not _ACCOUNT_NAME.fullmatch(value):
        raise InvalidInput(f"{show(value)} is not an account name: use 3 to 16 letters, digits, '-' and '_', a letter or digit first")
    return value


def email(value: object) -> str:
    if not isinstance(value, str) or len(value) > EMAIL_LENGTH_MAX or not _EMAIL.fullmatch(value):
        raise InvalidInput(f"{show(value)} is not an email address")
    return value


def token_name(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= TOKEN_NAME_LENGTH_MAX or not value.isprintable():
        raise InvalidInput(f"a token's name has 1 to {TOKEN_NAME_LENGTH_MAX} printable characters, unlike {show(value)}")
    return value


def scopes(value: object) -> frozenset[str]:
    if isinstance(value, str) or not isinstance(value, Collection):
        raise InvalidInput(f"scopes are a list of words, not {show(value)}")
    words = list(cast("Collection[Any]", value))
    unknown = [word for word in words if not isinstance(word, str) or word not in SCOPES]
    if unknown or not words:
        raise InvalidInput(f"scopes are one or more of {', '.join(sorted(SCOPES))}" + (f", not {show(unknown[0])}" if unknown else ""))
    return frozenset(words)


def tags(value: object) -> dict[str, str]:
    """Of machines that a token is for."""
    found = dict(cast("Mapping[Any, Any]", value)) if isinstance(value, Mapping) else None
    if found is None or len(found) > TAGS_MAX or not all(_is_tag(name) and _is_tag(text) for name, text in found.items()):
        raise InvalidInput(f"tags of a token are at most {TAGS_MAX} names with their values, printable texts of up to {TAG_BYTES_MAX} bytes")
    if "" in found:
        raise InvalidInput("a tag has a name")
    return found


def _is_tag(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and len(value.encode()) <= TAG_BYTES_MAX


def expires_at(value: object, now: float) -> float | None:
    """Seconds since 1970, after now."""
    if value is None:
        return None
    if type(value) not in (int, float) or not math.isfinite(cast("float", value)) or cast("float", value) <= now:
        raise InvalidInput(f"expires_at must be a time in the future, not {show(value)}")
    return float(cast("float", value))
