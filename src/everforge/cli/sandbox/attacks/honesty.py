"""Can it fool me?"""

from __future__ import annotations

import os
from typing import Any

from ..attack import REFUSED, Attack, Group, Outcome, Seen, broken, held
from ..bait import Bait
from ..inside import attempt, call_apart, opened


def the_guard(bait: dict[str, Any]) -> dict[str, Any]:
    return {
        "end it": attempt(lambda: os.kill(1, 0)),  # signal 0 asks only whether one may
        "take hold of it like a debugger": call_apart("ptrace", 0x4206, 1, 0, 0),  # PTRACE_SEIZE: what it holds does not even notice
        "read its memory": opened("/proc/1/mem", os.O_RDONLY),
        "write with its voice": opened("/proc/1/fd/1", os.O_WRONLY),
        "hear what it hears": opened("/proc/1/fd/0", os.O_RDONLY),
        "see its settings": opened("/proc/1/environ", os.O_RDONLY),
    }


def a_forged_end(bait: dict[str, Any]) -> dict[str, Any]:
    """Says in every way it knows that all is well, and fails."""
    forged = b'{"type":"ended","end":"value","value":"\'all is well\'"}\n'
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        if number > 2:
            attempt(lambda number=number: (os.set_blocking(number, False), os.write(number, forged)))
    print(forged.decode())
    raise ValueError("everforge: this did not end well")


def deaf(bait: dict[str, Any]) -> dict[str, Any]:
    """Ignores everything that it is told, for ever."""
    import signal

    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        attempt(lambda number=number: signal.signal(number, signal.SIG_IGN))
    while True:
        try:
            while True:
                pass
        except BaseException:
            continue


def guard_judge(seen: Seen, bait: Bait) -> Outcome:
    through = [name for name, why in seen.fact.items() if why not in REFUSED]
    return (
        broken(f"It could {', '.join(through)}.")
        if through or not seen.fact
        else held(f"Each of {len(seen.fact)} ways was refused: the guard is out of its reach.")
    )


def forged_judge(seen: Seen, bait: Bait) -> Outcome:
    if seen.end == "error" and ("did not end well" in seen.error or "InterpreterDied" in seen.error):
        return held("The server reports the failure, and not what the program said of itself.")
    return broken(f"The server believed it: the program ended {seen.end} ({seen.error}).")


def deaf_judge(seen: Seen, bait: Bait) -> Outcome:
    if not seen.answers:
        return broken("It was ended from outside when its time was over, but the machine answers nothing since.")
    return held("It was ended from outside when its time was over; the machine was asked something else then, and answered.")


GROUP = Group(
    "Can it fool me?",
    "No. What you are told comes from a guard that the program cannot touch.",
    (
        Attack("guard", "Take over the guard: the small program that starts it and reports on it", the_guard, guard_judge),
        Attack("forged-end", "Fail, and report a success in the guard's own words", a_forged_end, forged_judge, ends=("error",)),
        Attack("deaf", "Ignore every order to stop, and go on for ever", deaf, deaf_judge, ends=("timed_out",), seconds=1.0, then=True),
    ),
)
