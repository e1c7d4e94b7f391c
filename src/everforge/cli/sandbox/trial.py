"""Attacks, made one after the other, and judged."""

from __future__ import annotations

import inspect
import json
import secrets
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from . import inside
from .attack import SECONDS, Attack, Group, Outcome, Seen, not_made

if TYPE_CHECKING:
    from everforge import Machine

    from .bait import Bait


@dataclass(frozen=True, slots=True)
class Ran:
    """How a piece of code ended, and what it printed."""

    end: str
    stdout: str = ""
    error: str = ""
    note: str = ""


Ground = Callable[[str, float], Ran]  # runs code for so many seconds at most: in a machine, or wherever else a judge is to be tried


@dataclass(frozen=True, slots=True)
class Tried:
    group: Group
    attack: Attack
    outcome: Outcome


def in_machine(machine: Machine) -> Ground:
    def run(code: str, seconds: float) -> Ran:
        result = machine.run(code, timeout_seconds=seconds, wait_seconds=seconds + 30)
        return Ran(result.end, result.stdout, result.error or "", result.note or "")

    return run


def attempts(groups: tuple[Group, ...], ground: Ground, bait: Bait) -> Iterator[Tried]:
    for group in groups:
        for attack in group.attacks:
            yield Tried(group, attack, outcome(attack, ground, bait))


def outcome(attack: Attack, ground: Ground, bait: Bait) -> Outcome:
    """An attack that was not made does not count as one that was held."""
    seen = look(attack.inside, ground, bait.told(), attack.seconds)
    if attack.then:
        seen = replace(seen, answers=look(product, ground, {}, SECONDS).fact == product({}))
    if seen.end not in attack.ends or (seen.end == "value" and not seen.fact):
        return not_made(f"Not known, since the attack could not be made: {seen.error or seen.end}.")
    return attack.judge(seen, bait)


def product(told: dict[str, Any]) -> dict[str, Any]:
    """Something to ask, to see whether anybody answers."""
    return {"product": 6 * 7}


def look(function: Callable[..., Any], ground: Ground, told: dict[str, Any], seconds: float) -> Seen:
    """What a function sees that runs there. Its answer is found by a word made up for this once: nothing else that is printed can pass for it."""
    word = secrets.token_hex(8)
    code = f"{program(function)}\nprint({word!r} + json.dumps({function.__name__}(json.loads({json.dumps(told)!r}))))"
    ran = ground(code, seconds)
    answers = [line.removeprefix(word) for line in ran.stdout.splitlines() if line.startswith(word)]
    return Seen(ran.end, _read(answers[-1]) if answers else {}, ran.error, ran.note)


def program(function: Callable[..., Any]) -> str:
    """Its source, behind that of what it may use."""
    return f"{inspect.getsource(inside)}\nimport json\n\n{textwrap.dedent(inspect.getsource(function))}"


def _read(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}
