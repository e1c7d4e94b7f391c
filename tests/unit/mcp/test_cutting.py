from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from everforge.mcp.cutting import Middle, cut

GAP = "[{count} from {offset}]"


@given(st.lists(st.text(alphabet="ab\n", max_size=30), max_size=20), st.integers(1, 60))
def test_what_fits_is_whole_and_what_does_not_keeps_both_ends_and_says_what_is_missing(parts: list[str], room: int) -> None:
    kept, whole = Middle(room), "".join(parts)
    for part in parts:
        kept.add(part)
    if len(whole) <= room:
        assert kept.text(GAP) == whole
        return
    head, tail = whole[: room * 3 // 5], whole[len(whole) - (room - room * 3 // 5) :]
    assert kept.text(GAP) == f"{head}\n[{len(whole) - room} from {len(head)}]\n{tail}"


def test_no_more_is_held_than_is_kept() -> None:
    kept = Middle(1000)
    for _ in range(10_000):
        kept.add("x" * 100)
    assert sum(len(part) for part in [*kept._head, *kept._tail]) < 1500
    assert kept.left_out == 999_000


def test_short_text_is_left_alone() -> None:
    assert cut("abc", 3, GAP) == "abc"
