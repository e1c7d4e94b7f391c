from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from everforge.mcp.visible import line, visible, whole

texts = st.text(st.characters() | st.characters(categories=["Cc", "Cs"]) | st.sampled_from("\x1b\x9b\u2028\x85\ud83d\ude00"))


@given(texts)
def test_positions_stay_and_every_client_can_read_it(text: str) -> None:
    for made in (whole(text), visible(text), line(text)):
        assert len(made) == len(text)
        made.encode()
    assert not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in visible(text) if letter not in "\t\n\r")
    assert len(line(text).splitlines()) <= 1


def test_what_a_terminal_obeys_is_shown_and_the_rest_is_left() -> None:
    assert visible("\x1b[31mred\x07\ttab\r\nline é 😀") == "␛[31mred␇\ttab\r\nline é 😀"
    assert line("a\nb\tc") == "a␊b␉c"
    assert whole("\x1b and \ud800") == "\x1b and \ufffd"


def test_what_would_show_text_in_another_order_than_it_has_gives_way() -> None:
    turns = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    for turn in turns:
        assert visible(f"a{turn}b") == line(f"a{turn}b") == "a\ufffdb"
    assert visible("שלום مرحبا") == line("שלום مرحبا") == "שלום مرحبا"
