"""What an attack is: something that is tried inside a machine, and a judge outside who says what came of it.

The code inside reports what it saw; it does not decide anything. Where the outside has eyes of its own (a listener that counts who
came, a process that is or is not alive), the judge uses these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .bait import Bait

SECONDS = 15.0  # for one attack; none takes more than a few
REFUSED = ("EPERM", "EACCES", "ENOSYS", "ENOTSUP", "EOPNOTSUPP", "ENODEV", "ENOENT", "EROFS")  # the ways in which a kernel says no


@dataclass(frozen=True, slots=True)
class Seen:
    """What came back from inside. `fact` is whatever the code there made of it: it may hold anything."""

    end: str
    fact: Mapping[str, Any]
    error: str = ""
    note: str = ""
    answers: bool = True  # does the machine, afterwards? Known where the attack asks for it

    def text(self, name: str) -> str:
        return str(self.fact.get(name, ""))

    def number(self, name: str) -> int:
        found = self.fact.get(name)
        return found if isinstance(found, int) else -1

    def texts(self, name: str) -> list[str]:
        found: Any = self.fact.get(name)
        return [str(one) for one in found] if isinstance(found, list) else []  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


@dataclass(frozen=True, slots=True)
class Outcome:
    held: bool
    happened: str  # one sentence, for somebody who has never heard of any of this
    made: bool = True  # an attack that could not be made has shown nothing


def held(happened: str) -> Outcome:
    return Outcome(True, happened)


def broken(happened: str) -> Outcome:
    return Outcome(False, happened)


def not_made(happened: str) -> Outcome:
    return Outcome(False, happened, made=False)


Judge = Callable[[Seen, "Bait"], Outcome]


@dataclass(frozen=True, slots=True)
class Attack:
    name: str
    tried: str  # in plain words
    inside: Callable[[dict[str, Any]], dict[str, Any]]  # its source runs in the machine, behind that of inside.py; what it is given is the bait
    judge: Judge
    ends: Sequence[str] = ("value",)  # how its instruction may end; any other end means that the attack was not made
    seconds: float = SECONDS
    then: bool = False  # afterwards the machine is asked something, to see whether it still answers
    local: bool = True  # harmless also where nothing holds it back: it sends no packet beyond this computer


@dataclass(frozen=True, slots=True)
class Group:
    question: str  # of somebody who worries
    answer: str  # when all of it held
    attacks: Sequence[Attack]


def refused(attempt: str, what: str) -> Judge:
    """The judge of one attempt that must be refused: `attempt` is its name in the fact."""

    def judge(seen: Seen, bait: Bait) -> Outcome:
        why = seen.text(attempt)
        if why in REFUSED:
            return held(f"Refused: {what}.")
        return broken(f"It was not refused (the answer was {why or 'nothing'}).")

    return judge


def all_refused(what: str) -> Judge:
    """Of several attempts, each under its name in the fact."""

    def judge(seen: Seen, bait: Bait) -> Outcome:
        through = sorted(name for name, why in seen.fact.items() if why not in REFUSED)
        if not seen.fact:
            return broken("Nothing was tried.")
        return broken(f"Not refused: {', '.join(through)}.") if through else held(f"Each of {len(seen.fact)} ways was refused: {what}.")

    return judge
