"""Paths of a machine's files as parts of an address. No I/O."""

from __future__ import annotations

from urllib.parse import quote

from everforge.wire.errors import InvalidInput
from everforge.wire.sentences import say, show


def quoted(text: str) -> str:
    """One part of an address. Its first dots are quoted, too: whoever stands on the way would take `..` for a step up."""
    try:
        rest = text.lstrip(".")
        return "%2E" * (len(text) - len(rest)) + quote(rest, safe="", errors="surrogateescape")
    except UnicodeEncodeError as e:
        raise InvalidInput(f"{show(text)} has characters that are none (half of a surrogate pair): write the name in Unicode") from e


def file_path(path: object) -> str:
    """Of a file or a folder, part by part."""
    if not isinstance(path, str) or not path or "\0" in path:
        raise InvalidInput(say("bad_file_path", text=show(path)))
    return "/".join(quoted(part) for part in path.split("/"))


def path_to_delete(path: object) -> str:
    """As `file_path`, for what cannot be undone: a path that says plainly what it means."""
    quoted_path = file_path(path)
    if any(part in (".", "..") for part in str(path).split("/")):
        raise InvalidInput(say("dots_not_deleted", text=show(path)))
    return quoted_path
