"""The two tables that say what may happen to a machine. Data first: the docs' diagram, the recovery tests and the property tests read them.

*Residence* is where the memory is; *turn* is what the interpreter is doing. Nothing else in the code changes either: `move` and `turn` give the next
state or raise WrongState, and then nothing has changed.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from everforge.wire.errors import WrongState


class Residence(enum.StrEnum):
    CREATING = "creating"
    AWAKE = "awake"
    SAVING = "saving"
    HIBERNATING = "hibernating"
    ASLEEP = "asleep"
    WAKING = "waking"
    BROKEN = "broken"
    DELETING = "deleting"
    DELETED = "deleted"


class Arrow(enum.StrEnum):
    """Events of a residence."""

    STARTED = "started"
    START_FAILED = "start_failed"
    SAVE_STARTED = "save_started"
    SAVE_ENDED = "save_ended"  # well or not, the machine stays alive
    SLEEP_STARTED = "sleep_started"
    SLEEP_RECORDED = "sleep_recorded"
    WANTED_AGAIN = "wanted_again"
    SAVE_FAILED = "save_failed"
    WAKE_STARTED = "wake_started"
    WOKEN = "woken"
    WAKE_FAILED = "wake_failed"
    SNAPSHOT_BAD = "snapshot_bad"
    ROLLBACK_STARTED = "rollback_started"
    RESET_STARTED = "reset_started"
    SANDBOX_LOST = "sandbox_lost"
    RESUMED = "resumed"  # the host lost the memory, not the guest: back at the last snapshot, and the tape says so
    DELETE_ASKED = "delete_asked"
    REMOVED = "removed"


R, A = Residence, Arrow

RESIDENCE: Mapping[Residence, Mapping[Arrow, Residence]] = {
    R.CREATING: {A.STARTED: R.AWAKE, A.START_FAILED: R.BROKEN, A.DELETE_ASKED: R.DELETING},
    R.AWAKE: {
        A.SAVE_STARTED: R.SAVING,
        A.SLEEP_STARTED: R.HIBERNATING,
        A.ROLLBACK_STARTED: R.WAKING,
        A.RESET_STARTED: R.CREATING,
        A.SANDBOX_LOST: R.BROKEN,
        A.DELETE_ASKED: R.DELETING,
    },
    R.SAVING: {A.SAVE_ENDED: R.AWAKE, A.SANDBOX_LOST: R.BROKEN, A.DELETE_ASKED: R.DELETING},
    R.HIBERNATING: {
        A.SLEEP_RECORDED: R.ASLEEP,
        A.WANTED_AGAIN: R.AWAKE,
        A.SAVE_FAILED: R.AWAKE,
        A.SANDBOX_LOST: R.BROKEN,
        A.DELETE_ASKED: R.DELETING,
    },
    R.ASLEEP: {A.WAKE_STARTED: R.WAKING, A.ROLLBACK_STARTED: R.WAKING, A.RESET_STARTED: R.CREATING, A.DELETE_ASKED: R.DELETING},
    R.WAKING: {A.WOKEN: R.AWAKE, A.WAKE_FAILED: R.ASLEEP, A.SNAPSHOT_BAD: R.BROKEN, A.DELETE_ASKED: R.DELETING},
    R.BROKEN: {A.ROLLBACK_STARTED: R.WAKING, A.RESET_STARTED: R.CREATING, A.RESUMED: R.ASLEEP, A.DELETE_ASKED: R.DELETING},
    R.DELETING: {A.REMOVED: R.DELETED},
    R.DELETED: {},
}

ACCEPTING = frozenset({R.CREATING, R.AWAKE, R.SAVING, R.HIBERNATING, R.ASLEEP, R.WAKING})  # acceptance is a write on the tape, not a run


class Turn(enum.StrEnum):
    IDLE = "idle"
    RUNNING = "running"
    WAITING = "waiting"  # for the answer of a host function


class TurnArrow(enum.StrEnum):
    TURN_STARTED = "turn_started"
    TURN_ENDED = "turn_ended"  # value, error, interrupted, timed out, lost
    CALLED = "called"
    ANSWERED = "answered"


TURN: Mapping[Turn, Mapping[TurnArrow, Turn]] = {
    Turn.IDLE: {TurnArrow.TURN_STARTED: Turn.RUNNING},
    Turn.RUNNING: {TurnArrow.TURN_ENDED: Turn.IDLE, TurnArrow.CALLED: Turn.WAITING},
    Turn.WAITING: {TurnArrow.ANSWERED: Turn.RUNNING, TurnArrow.TURN_ENDED: Turn.IDLE},
}


def move(residence: Residence, arrow: Arrow) -> Residence:
    try:
        return RESIDENCE[residence][arrow]
    except KeyError:
        raise WrongState(f"a machine that is {residence} cannot go through {arrow}", residence=residence, arrow=arrow) from None


def turn(now: Turn, arrow: TurnArrow, residence: Residence) -> Turn:
    if arrow is TurnArrow.TURN_STARTED and residence is not Residence.AWAKE:
        raise WrongState(f"a machine that is {residence} cannot start an instruction", residence=residence, arrow=arrow)
    try:
        return TURN[now][arrow]
    except KeyError:
        raise WrongState(f"a turn that is {now} cannot go through {arrow}", turn=now, arrow=arrow) from None


def state(residence: Residence, now: Turn) -> str:
    """What users see."""
    if residence in (Residence.AWAKE, Residence.SAVING):
        return "ready" if now is Turn.IDLE else "busy"
    return "deleted" if residence is Residence.DELETING else str(residence)


def diagram() -> str:
    """The residence table as a Mermaid state diagram, for the docs."""
    lines = ["stateDiagram-v2", "    [*] --> creating"]
    for residence, arrows in RESIDENCE.items():
        lines += [f"    {residence} --> {target}: {arrow}" for arrow, target in arrows.items()]
    return "\n".join([*lines, "    deleted --> [*]"]) + "\n"


if __name__ == "__main__":
    print(diagram(), end="")
