"""Work in heaps is done in pieces, and everybody else comes in between."""

from __future__ import annotations

import asyncio

from everforge.server.turns import AT_ONCE, Turns


async def test_many_heaps_take_turns_and_others_come_in_between() -> None:
    turns, seen = Turns(), list[str]()

    def heap(name: str, pieces: int) -> None:
        left = iter(range(pieces))

        def work() -> bool:
            seen.append(f"{name}{next(left)}")
            return len([each for each in seen if each.startswith(name)]) < pieces

        turns.do(work)

    for name in "abcdefghijkl":
        heap(name, 3)
    others = 0
    async with asyncio.timeout(5):
        while len(seen) < 12 * 3:
            before = len(seen)
            await asyncio.sleep(0)
            others += 1
            assert len(seen) - before <= AT_ONCE
    assert others >= 12 * 3 / AT_ONCE - 2
    assert sorted(seen) == sorted(f"{name}{piece}" for name in "abcdefghijkl" for piece in range(3))
    assert seen.index("l0") < seen.index("a2")


async def test_a_small_piece_of_work_is_done_at_once() -> None:
    turns, seen = Turns(), list[int]()

    def work() -> bool:
        seen.append(1)
        return False

    turns.do(work)
    assert seen == [1]
