"""Clients append numbers inside machines while faults happen: every acknowledged number is there exactly once and in order, unless a `lost` was reported.

And a judge who never complains is worth nothing: given a history with a number lost, doubled or out of order, it must.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kit.history import Done, Sent, judge, key_of, told_by
from kit.length import LONG, TIMEOUT_FACTOR, length
from kit.real import until_gone
from kit.serverprocess import check_nothing_leaked
from kit.turmoil import Turmoil

SECONDS = length(20.0, 330.0)
SEED = int(os.environ.get("EVERFORGE_TEST_SEED", 0)) or (random.SystemRandom().randrange(1, 2**32) if LONG else 5)


@pytest.mark.gvisor
@pytest.mark.slow
@pytest.mark.timeout(400 * TIMEOUT_FACTOR)
async def test_nothing_is_lost_and_nothing_is_done_twice_whatever_happens(data: Path) -> None:
    print(f"EVERFORGE_TEST_SEED={SEED}")
    turmoil = Turmoil(data, SEED, SECONDS)
    server = await turmoil.run()
    print(dict(turmoil.done))
    assert await turmoil.judge() == {}
    await check_nothing_leaked(server)
    await turmoil.delete_all()
    await check_nothing_leaked(server)
    await server.stop()
    await until_gone(data)
    assert not [act for act in turmoil.saboteurs if LONG and not turmoil.done[act]], turmoil.done
    assert turmoil.done["append"] > 5, turmoil.done
    assert turmoil.done["look"] > 5, turmoil.done


# --- the judge ---------------------------------------------------------------------------------------------------------------------------------


@dataclass
class Story:
    """A history without a fault in it, to be spoilt: four numbers, a rollback to after the second, two more; then the last is lost, one comes, and it sleeps."""

    tape: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    sent: list[Sent] = field(default_factory=list[Sent])
    memory: list[int] = field(default_factory=list[int])
    done: Done = field(default_factory=Done)

    def tell(self, kind: str, **fields: Any) -> None:
        self.tape.append({"kind": kind, "position": len(self.tape), **fields})

    def append(self, number: int) -> None:
        self.end(self.accept(number), number)

    def accept(self, number: int) -> int:
        instruction = len([e for e in self.tape if e["kind"] == "accepted"])
        self.tell("accepted", instruction=instruction, key=key_of(number))
        return instruction

    def end(self, instruction: int, number: int, end: str = "value") -> None:
        if end == "value":
            self.memory.append(number)
        value = told_by(self.memory) if end == "value" else None
        self.tell("ended", instruction=instruction, end=end, value=value)
        self.sent.append(Sent(number, {instruction}, {(end, value)}))

    def keep(self, name: str, instruction: int) -> None:
        """A point that was told, here."""
        self.done.points[name] = len(self.tape) - 1, instruction

    def go_back(self, instruction: int, memory: list[int]) -> None:
        self.tell("moved", event="rollback_started", detail={"instruction": instruction})
        self.memory = memory


@pytest.fixture
def story() -> Story:
    story = Story()
    story.append(10)
    story.append(11)
    story.keep("second", 1)
    story.append(12)
    story.append(13)
    story.done.asked = story.done.went_back = ["second"]
    story.go_back(1, [10, 11])
    story.append(14)
    story.keep("third", 4)
    story.append(15)
    story.done.losses_max = 1
    story.tell("lost", first_instruction=5, last_instruction=5)
    story.memory = [10, 11, 14]
    story.append(16)
    story.tell("moved", event="sleep_recorded", detail={})
    return story


def complaints(story: Story) -> str:
    return "; ".join(judge(story.tape, story.sent, story.memory, story.done))


def test_a_history_in_which_all_is_well_is_not_complained_of(story: Story) -> None:
    assert story.memory == [10, 11, 14, 16]
    assert not complaints(story)


def lose_one(story: Story) -> None:
    story.memory.remove(11)


def double_one(story: Story) -> None:
    story.memory.append(16)


def swap_two(story: Story) -> None:
    story.memory[1:3] = reversed(story.memory[1:3])


def bring_back_what_was_lost(story: Story) -> None:
    story.memory.insert(3, 15)


def bring_back_what_was_rolled_back(story: Story) -> None:
    story.memory.insert(2, 12)


def run_one_on_another_list(story: Story) -> None:
    story.tape[-2]["value"] = told_by([10, 11, 14, 15, 16])
    story.sent[-1].ends = {("value", story.tape[-2]["value"])}


def forget_an_end(story: Story) -> None:
    del story.tape[3]


def tell_an_end_that_was_not(story: Story) -> None:
    story.sent[1].ends.add(("lost", None))


def tell_of_one_that_never_came(story: Story) -> None:
    story.sent.append(Sent(99, {77}, {("value", "x")}))


def accept_a_key_twice(story: Story) -> None:
    story.tell("accepted", instruction=50, key=key_of(16))
    story.tell("ended", instruction=50, end="error", value=None)
    story.sent[-1].instructions.add(50)


def end_one_twice(story: Story) -> None:
    story.tell("ended", instruction=1, end="value", value=told_by([10, 11]))


def give_a_position_twice(story: Story) -> None:
    story.tape[4]["position"] = 3


def execute_in_another_order(story: Story) -> None:
    first, second = story.accept(17), story.accept(18)
    story.end(second, 18)
    story.end(first, 17)


def end_most_as_errors(story: Story) -> None:
    for number in range(20, 30):
        story.end(story.accept(number), number, "error")


def end_one_as_lost_though_no_memory_was(story: Story) -> None:
    story.end(story.accept(17), 17, "lost")


def fall_back_behind_a_sleep(story: Story) -> None:
    story.done.losses_max = 2
    story.tell("lost", first_instruction=6, last_instruction=6)
    story.memory.remove(16)


def fall_back_behind_a_point(story: Story) -> None:
    lost = next(e for e in story.tape if e["kind"] == "lost")
    lost["first_instruction"] = 4


def go_back_to_another_point_than_the_one_asked_for(story: Story) -> None:
    next(e for e in story.tape if e.get("event") == "rollback_started")["detail"]["instruction"] = 0


def go_back_unasked(story: Story) -> None:
    story.go_back(0, [10])


def say_that_it_went_back_and_stay(story: Story) -> None:
    story.done.asked = story.done.went_back = ["second", "third"]


def lose_memory_without_a_reason(story: Story) -> None:
    """As when it was another machine's sandbox that was killed."""
    story.tell("lost", first_instruction=None, last_instruction=None)


SPOILT: dict[Callable[[Story], None], str] = {
    lose_one: "nobody said that they were lost: [11]",
    double_one: "twice in memory: [16]",
    swap_two: "in another order",
    bring_back_what_was_lost: "in memory, and not on the tape: [15]",
    bring_back_what_was_rolled_back: "in memory, and not on the tape: [12]",
    run_one_on_another_list: "16 was appended to another list",
    forget_an_end: "never ended: [1]",
    tell_an_end_that_was_not: "11 was told to have ended as ('lost', None)",
    tell_of_one_that_never_came: "99 was told to be instruction [77], and on the tape it is None",
    accept_a_key_twice: "key n16 was accepted twice",
    end_one_twice: "instruction 1 ended twice",
    give_a_position_twice: "position 3 comes after 3",
    execute_in_another_order: "instruction 8 ended before [7]",
    end_most_as_errors: "only 7 of 17 numbers were appended",
    end_one_as_lost_though_no_memory_was: "1 instructions ended as lost, and no entry says that memory was",
    fall_back_behind_a_sleep: "instructions from 6 on are lost, and up to 6 they were told to be kept",
    fall_back_behind_a_point: "instructions from 4 on are lost, and up to 4 they were told to be kept",
    go_back_to_another_point_than_the_one_asked_for: "rolled back to after {0: 1}, and nobody asked",
    go_back_unasked: "rolled back to after {0: 1}, and nobody asked",
    say_that_it_went_back_and_stay: "told to be back after {4: 1}",
    lose_memory_without_a_reason: "2 losses were told, and there were 1",
}


@pytest.mark.parametrize("spoil", SPOILT, ids=lambda spoil: spoil.__name__)
def test_the_judge_complains_when_somebody_was_to(spoil: Callable[[Story], None], story: Story) -> None:
    spoil(story)
    assert SPOILT[spoil] in complaints(story)


def test_a_fork_answers_only_for_what_it_did_itself(story: Story) -> None:
    """Its tape begins with that of its source, whose losses and rollbacks are on it."""
    story.done = Done(inherited=story.tape[-1]["position"])
    assert not complaints(story)
