"""Can it see my programs?"""

from __future__ import annotations

import os
from typing import Any

from ..attack import Attack, Group, Outcome, Seen, broken, held
from ..bait import Bait
from ..inside import attempt, pids, read


def processes(bait: dict[str, Any]) -> dict[str, Any]:
    found = [read(f"/proc/{pid}/cmdline").replace("\0", " ") for pid in pids()]
    return {"count": len(found), "found": found}


def environment(bait: dict[str, Any]) -> dict[str, Any]:
    found = [read(f"/proc/{pid}/environ") for pid in pids()]
    return {"own": len(os.environ), "found": [*found, os.environ.get(bait["variable"], "")]}


def killing(bait: dict[str, Any]) -> dict[str, Any]:
    import signal

    if str(bait["pid"]) in pids() and bait["mark"] not in read(f"/proc/{bait['pid']}/cmdline"):
        return {"why": "that number is a program of the machine's own"}
    return {"why": attempt(lambda: os.kill(bait["pid"], signal.SIGKILL))}


def processes_judge(seen: Seen, bait: Bait) -> Outcome:
    if bait.seen_in(seen.fact):
        return broken("It saw a program that runs on your computer.")
    return held(f"It sees {seen.number('count')} programs, all of them its own." if seen.number("count") > 0 else "It sees none.")


def environment_judge(seen: Seen, bait: Bait) -> Outcome:
    if bait.seen_in(seen.fact):
        return broken("It read a setting of yours.")
    return held(f"It has {seen.number('own')} settings of its own, and none of yours.")


def killing_judge(seen: Seen, bait: Bait) -> Outcome:
    """Whatever it says of itself: is the program alive?"""
    import time

    for _ in range(10):
        if bait.process.poll() is not None:
            return broken("It ended a program on your computer.")
        time.sleep(0.02)  # a killed process takes a moment to be gone
    return held("The program on your computer still runs.")


GROUP = Group(
    "Can it see my programs?",
    "No. It sees its own programs only, and none of your settings and passwords in the environment.",
    (
        Attack("processes", "List all programs, looking for one that runs on your computer now", processes, processes_judge),
        Attack("environment", "Read the settings (environment variables) of every program it sees", environment, environment_judge),
        Attack("kill", "End that program on your computer by its number", killing, killing_judge),
    ),
)
