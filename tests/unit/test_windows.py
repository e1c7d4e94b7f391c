"""Counting in windows of time, for whoever does."""

from __future__ import annotations

from everforge.windows import Windows


def counted(windows: Windows[str], key: str, now: float) -> int:
    window = windows.at(key, now)
    window.count += 1
    return window.count


def test_a_window_begins_with_the_first_that_comes_and_lasts_its_time() -> None:
    windows = Windows[str](60.0, 10)
    assert [counted(windows, "a", now) for now in (100.0, 130.0, 159.9)] == [1, 2, 3]
    assert [counted(windows, "a", now) for now in (160.0, 219.9)] == [1, 2]
    assert counted(windows, "a", 1_000.0) == 1  # the next begins with who comes next, not where the last one ended
    assert counted(windows, "a", 1_059.9) == 2


def test_keys_are_counted_apart() -> None:
    windows = Windows[tuple[str, int]](60.0, 10)
    windows.at(("a", 1), 0.0).count += 5
    assert windows.at(("a", 2), 0.0).count == 0
    assert windows.at(("a", 1), 1.0).count == 5


def test_a_new_window_knows_how_many_the_one_before_had() -> None:
    windows = Windows[str](60.0, 10)
    assert windows.at("a", 0.0).before == 0
    for _ in range(3):
        counted(windows, "a", 1.0)
    assert (windows.at("a", 30.0).before, windows.at("b", 30.0).before) == (0, 0)
    assert windows.at("a", 61.0).before == 3
    assert windows.at("a", 200.0).before == 0  # nothing was counted in that one


def test_beyond_so_many_keys_the_window_that_began_first_is_forgotten() -> None:
    windows = Windows[str](60.0, 3)
    for at, key in enumerate(("a", "b", "c")):
        counted(windows, key, float(at))
    counted(windows, "a", 60.0)  # a new one: by now the youngest
    counted(windows, "d", 60.5)
    assert len(windows) == 3
    assert [windows.at(key, 60.9).count for key in ("a", "c", "d")] == [1, 1, 1]
    assert (windows.at("b", 60.9).count, windows.at("b", 60.9).before) == (0, 0)


def test_one_whose_window_is_over_is_not_in_the_way_of_its_own_next_one() -> None:
    windows = Windows[str](60.0, 2)
    counted(windows, "a", 0.0)
    counted(windows, "b", 1.0)
    counted(windows, "b", 61.5)
    assert (windows.at("a", 59.0).count, windows.at("b", 61.6).before) == (1, 1)
