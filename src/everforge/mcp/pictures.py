"""What was shown, for a model: pictures that it can see, the text of everything else. What comes from a machine may not be what it says it is."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp.types import ImageContent

from .cutting import cut
from .limits import PICTURE_CHARACTERS_MAX, PICTURES_CHARACTERS_MAX, PICTURES_MAX, VALUE_CHARACTERS

KINDS = {"png": "image/png", "image/png": "image/png", "jpeg": "image/jpeg", "image/jpeg": "image/jpeg"}
BEGINNINGS = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
TEXTS = ("text", "text/plain", "markdown", "text/markdown", "latex", "text/latex", "json", "application/json", "svg", "image/svg+xml")
GAP = "[... {count} characters left out ...]"


@dataclass
class Shown:
    """Everything that an instruction showed, as far as there is room for it."""

    pictures: list[ImageContent] = field(default_factory=list[ImageContent])
    texts: list[str] = field(default_factory=list[str])
    left_out: int = 0
    _room: int = PICTURES_CHARACTERS_MAX
    _text_room: int = VALUE_CHARACTERS

    def add(self, data: Mapping[str, Any] | None, *, text_too: bool = True) -> None:
        """One thing in several formats: a picture if it is one, else its text."""
        for kind, mime in KINDS.items():
            content = (data or {}).get(kind)
            if isinstance(content, str):
                self._take(content, mime)
                return
        if text_too and data:
            self._tell(data)

    def _take(self, content: str, mime: str) -> None:
        picture = picture_of(content, mime) if len(content) <= PICTURE_CHARACTERS_MAX else None
        if picture is None or len(self.pictures) >= PICTURES_MAX or len(picture.data) > self._room:
            self.left_out += 1
            return
        self._room -= len(picture.data)
        self.pictures.append(picture)

    def _tell(self, data: Mapping[str, Any]) -> None:
        found = next((data[kind] for kind in TEXTS if data.get(kind) is not None), None)
        if found is None or self._text_room <= 0:
            self.left_out += found is not None
            return
        text = cut(found if isinstance(found, str) else json.dumps(found), self._text_room, GAP)
        self._text_room -= len(text)
        self.texts.append(text)

    @property
    def note(self) -> str | None:
        if not self.left_out:
            return None
        return (
            f"{self.left_out} of what was shown is left out: too large, too many, or damaged. Show fewer and smaller pictures (a lower dpi),"
            " or save them to files and look at each with read_file."
        )


def picture_of(content: str, mime: str) -> ImageContent | None:
    """None if it is not what it says."""
    try:
        raw = base64.b64decode("".join(content.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    return image_of(raw) if raw.startswith(BEGINNINGS[mime]) else None


def image_of(raw: bytes) -> ImageContent | None:
    """Of the bytes of a picture; None if they are none that models can see, or too many."""
    mime = next((mime for mime, beginning in BEGINNINGS.items() if raw.startswith(beginning)), None)
    data = base64.b64encode(raw).decode() if mime else ""
    return ImageContent(type="image", data=data, mime_type=mime) if mime and len(data) <= PICTURE_CHARACTERS_MAX else None
