"""Judges what clients were told against what a machine's tape says and what its memory holds: nothing lost, nothing twice, nothing in another order.

Clients append numbers to a list in the machine, each number once, under a key that names it. The tape is read from its beginning and the list is
worked out from it: a number comes with the end of its instruction, a rollback brings back the list of the point's instruction, and a `lost` the list
from before the first instruction that it names. What was told, and what is in memory at the end, must agree with that; and so must what was done to the
machine: nobody is rolled back unasked or to elsewhere, and nothing that was told to be kept is lost.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Event = Mapping[str, Any]
LOOK = "globals().get('seen', [])"


def key_of(number: int) -> str:
    return f"n{number}"


def append_code(number: int) -> str:
    """Its value tells the whole list, in short."""
    return f"import zlib\nseen = globals().get('seen', [])\nseen.append({number})\nlen(seen), zlib.crc32(repr(seen).encode())"


def told_by(numbers: Sequence[int]) -> str:
    """What the last append of such a list answers."""
    return repr((len(numbers), zlib.crc32(repr(list(numbers)).encode())))


@dataclass
class Sent:
    """What one client knows of one number."""

    number: int
    instructions: set[int] = field(default_factory=set[int])  # under which it was told to be accepted; one, however often it was sent
    ends: set[tuple[str, str | None]] = field(default_factory=set[tuple[str, str | None]])  # how it was told to have ended, with its value


@dataclass
class Done:
    """What was done to one machine, by its clients and by the saboteur. A fork answers for what comes after the tape that it has from its source."""

    points: dict[str, tuple[int, int | None]] = field(default_factory=dict[str, tuple[int, int | None]])  # told: name -> position, last instruction
    asked: list[str] = field(default_factory=list[str])  # points that somebody wanted it to go back to, and
    went_back: list[str] = field(default_factory=list[str])  # that it was told to have gone back to
    losses_max: int = 0  # how often something was killed that had its memory in it
    faults: int = 0  # calls that were made to fail: one that fails as it is woken may end an instruction as lost, and no memory
    inherited: int = -1  # the last position of its source's tape


@dataclass
class Judge:
    """Reads one tape. `complaints` are sentences; none of them may be there at the end."""

    done: Done = field(default_factory=Done)
    complaints: list[str] = field(default_factory=list[str])
    numbers: list[int] = field(default_factory=list[int])  # the list, as the tape has it so far
    losses: int = 0
    lost_alone: int = 0  # ends as lost, without an entry that says that memory was
    went_back: Counter[int | None] = field(default_factory=Counter[int | None])  # to after which instruction, and how often
    _accepted: dict[int, int | None] = field(default_factory=dict[int, int | None])  # instruction -> number
    _keys: dict[str, int] = field(default_factory=dict[str, int])
    _ends: dict[int, tuple[str, str | None]] = field(default_factory=dict[int, tuple[str, str | None]])
    _before: dict[int, list[int]] = field(default_factory=dict[int, list[int]])  # the list before an instruction, and
    _after: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    _position: int = -1
    _kept: int = -1  # the last instruction that is in a snapshot which was told, or recorded as one to sleep in
    _losing: bool = False  # an entry just said that memory was lost, or cannot be read

    def read(self, tape: Sequence[Event]) -> None:
        for event in tape:
            if event["position"] <= self._position:
                self.complaints.append(f"position {event['position']} comes after {self._position}")
            self._position = event["position"]
            match event["kind"]:
                case "accepted":
                    self._accept(event)
                case "ended":
                    self._end(event)
                case "lost":
                    self._lose(event)
                case "moved":
                    self._move(event)
                case _:
                    pass

    @property
    def _is_ours(self) -> bool:
        return self._position > self.done.inherited

    def _move(self, event: Event) -> None:
        match event["event"]:
            case "rollback_started":
                self._go_back(event["detail"]["instruction"])
            case "sleep_recorded":
                self._kept = max((i for i, (end, _) in self._ends.items() if end == "value"), default=-1)
            case "snapshot_bad":
                self._losing = True
            case _:
                pass

    def _accept(self, event: Event) -> None:
        self._losing = False
        instruction, key = event["instruction"], event["key"]
        if instruction in self._accepted:
            self.complaints.append(f"instruction {instruction} was accepted twice")
        if key is not None and key in self._keys:
            self.complaints.append(f"key {key} was accepted twice")
        self._accepted[instruction] = int(key[1:]) if key else None
        if key is not None:
            self._keys[key] = instruction

    def _end(self, event: Event) -> None:
        instruction = event["instruction"]
        if instruction in self._ends or instruction not in self._accepted:
            self.complaints.append(f"instruction {instruction} ended twice, or was never accepted")
            return
        if earlier := [i for i in self._accepted if i < instruction and i not in self._ends]:
            self.complaints.append(f"instruction {instruction} ended before {earlier}, which were accepted earlier")
        self._losing &= event["end"] == "lost"
        self.lost_alone += event["end"] == "lost" and not self._losing and self._is_ours
        self._before[instruction] = list(self.numbers)
        self._ends[instruction] = event["end"], event["value"]
        number = self._accepted[instruction]
        if number is not None and event["end"] == "value":
            self.numbers.append(number)
            if event["value"] != told_by(self.numbers):
                self.complaints.append(f"{number} was appended to another list than the tape's: {event['value']} is not {told_by(self.numbers)}")
        self._after[instruction] = list(self.numbers)

    def _go_back(self, instruction: int | None) -> None:
        if instruction is not None and instruction not in self._after:
            self.complaints.append(f"the machine went back to after instruction {instruction}, which had not ended")
        self.went_back[instruction] += self._is_ours
        self.numbers = [] if instruction is None else list(self._after.get(instruction, []))

    def _lose(self, event: Event) -> None:
        self.losses += self._is_ours
        self._losing = True
        first = event["first_instruction"]
        if first is not None:
            kept = max([self._kept, *(last for position, last in self.done.points.values() if position < self._position and last is not None)])
            if first <= kept:
                self.complaints.append(f"instructions from {first} on are lost, and up to {kept} they were told to be kept")
            self.numbers = next((list(self._before[i]) for i in sorted(self._before) if i >= first), self.numbers)

    def compare(self, sent: Sequence[Sent], memory: Sequence[int]) -> None:
        for one in sent:
            self._compare_one(one)
        if len(set(memory)) != len(memory):
            self.complaints.append(f"twice in memory: {sorted({n for n in memory if memory.count(n) > 1})}")
        if missing := [n for n in self.numbers if n not in set(memory)]:
            self.complaints.append(f"not in memory, and nobody said that they were lost: {missing}")
        if strange := [n for n in memory if n not in set(self.numbers)]:
            self.complaints.append(f"in memory, and not on the tape: {strange}")
        if list(memory) != self.numbers and sorted(memory) == sorted(self.numbers):
            self.complaints.append("in memory in another order than on the tape")

    def _compare_one(self, one: Sent) -> None:
        on_tape = self._keys.get(key_of(one.number))
        if len(one.instructions) > 1:
            self.complaints.append(f"{one.number} was accepted as {sorted(one.instructions)}: more than once")
        if one.instructions - {on_tape}:
            self.complaints.append(f"{one.number} was told to be instruction {sorted(one.instructions)}, and on the tape it is {on_tape}")
        for end in one.ends:
            if on_tape is None or self._ends.get(on_tape) != end:
                self.complaints.append(f"{one.number} was told to have ended as {end}, and the tape says {self._ends.get(on_tape or -1)}")

    def compare_done(self) -> None:
        """Several clients work at once, so that only how often each thing was done can be compared."""
        done = self.done
        asked, told = (Counter(done.points[name][1] for name in names) for names in (done.asked, done.went_back))
        if unasked := self.went_back - asked:
            self.complaints.append(f"rolled back to after {dict(unasked)}, and nobody asked for that")
        if elsewhere := told - self.went_back:
            self.complaints.append(f"told to be back after {dict(elsewhere)}, and the tape knows nothing of it")
        if self.losses > done.losses_max:
            self.complaints.append(f"{self.losses} losses were told, and there were {done.losses_max} at the most")
        if self.lost_alone > done.faults:
            self.complaints.append(f"{self.lost_alone} instructions ended as lost, and no entry says that memory was")

    def compare_ends(self, value_share_min: float) -> None:
        ends = [self._ends[i][0] for i, number in self._accepted.items() if number is not None and i in self._ends]
        if ends.count("value") < value_share_min * len(ends):
            self.complaints.append(f"only {ends.count('value')} of {len(ends)} numbers were appended: {dict(Counter(ends))}")
        if unended := sorted(self._accepted.keys() - self._ends.keys()):
            self.complaints.append(f"accepted, and never ended: {unended}")


def judge(tape: Sequence[Event], sent: Sequence[Sent], memory: Sequence[int], done: Done, *, value_share_min: float = 0.5) -> list[str]:
    """Complaints."""
    found = Judge(done)
    found.read(tape)
    found.compare(sent, memory)
    found.compare_done()
    found.compare_ends(value_share_min)
    return found.complaints
