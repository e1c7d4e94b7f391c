from __future__ import annotations

import base64

import pytest

from everforge.mcp.limits import PICTURE_CHARACTERS_MAX, PICTURES_CHARACTERS_MAX, PICTURES_MAX
from everforge.mcp.pictures import BEGINNINGS, Shown

PNG = base64.b64encode(BEGINNINGS["image/png"] + b"rest").decode()
JPEG = base64.b64encode(BEGINNINGS["image/jpeg"] + b"rest").decode()


@pytest.mark.parametrize(
    ("data", "mime"),
    [({"png": PNG}, "image/png"), ({"image/jpeg": JPEG, "text": "<Figure>"}, "image/jpeg"), ({"png": PNG[:4] + "\n" + PNG[4:]}, "image/png")],
)
def test_a_picture_comes_as_one_without_its_text(data: dict[str, str], mime: str) -> None:
    shown = Shown()
    shown.add(data)
    assert [picture.mime_type for picture in shown.pictures] == [mime]
    assert (shown.texts, shown.note) == ([], None)
    assert base64.b64decode(shown.pictures[0].data, validate=True).startswith(BEGINNINGS[mime])


@pytest.mark.parametrize("content", ["not base64!", base64.b64encode(b"<script>").decode(), JPEG, ""])
def test_what_only_says_that_it_is_a_picture_is_left_out_and_told(content: str) -> None:
    shown = Shown()
    shown.add({"png": content})
    assert shown.pictures == []
    assert shown.note is not None
    assert shown.note.startswith("1 of what was shown is left out")


def test_there_is_a_limit_to_one_picture_to_their_number_and_to_all_together() -> None:
    shown = Shown()
    shown.add({"png": PNG + "A" * PICTURE_CHARACTERS_MAX})
    assert (len(shown.pictures), shown.left_out) == (0, 1)
    for _ in range(PICTURES_MAX + 2):
        shown.add({"png": PNG})
    assert (len(shown.pictures), shown.left_out) == (PICTURES_MAX, 3)
    large, many = base64.b64encode(BEGINNINGS["image/png"] + bytes(990_000)).decode(), Shown()
    for _ in range(5):
        many.add({"png": large})
    assert sum(len(picture.data) for picture in many.pictures) <= PICTURES_CHARACTERS_MAX
    assert many.left_out == 5 - len(many.pictures) > 0


def test_tables_and_drawings_come_as_text_and_html_does_not() -> None:
    shown = Shown()
    shown.add({"html": "<table>", "text": "a b\n1 2"})
    shown.add({"image/svg+xml": "<svg/>"})
    shown.add({"application/json": {"a": 1}})
    shown.add({"html": "<b>"})
    assert shown.texts == ["a b\n1 2", "<svg/>", '{"a": 1}']


def test_long_texts_are_cut() -> None:
    shown = Shown()
    for _ in range(5):
        shown.add({"text": "x" * 8000})
    assert sum(len(text) for text in shown.texts) < 11_000
    assert shown.left_out
