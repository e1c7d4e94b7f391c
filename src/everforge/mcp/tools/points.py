"""Points in time of a machine: keep one, list them, go back, begin anew."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from everforge.wire import api

from ..answers import Answer
from ..calls import Call
from ..limits import LISTED_MAX
from .base import Arguments, Data, MachineName, Tool, changes, reads

SnapshotName = Annotated[str, Field(max_length=100)]


class Point(BaseModel):
    id: str
    name: str | None
    instruction: int | None = Field(description="The last instruction whose effects it holds.")
    created_at: str


class SnapshotMachine(Arguments):
    name: Annotated[SnapshotName, Field(description="To go back to it by. It is kept for as long as it has a name.")] = ""
    machine: MachineName = ""


class Snapshotted(Data):
    machine: str
    snapshot: Point


async def snapshot_machine(call: Call, given: SnapshotMachine) -> Answer:
    chosen = await call.machine(given.machine)
    point = _point(await chosen.machine.snapshot(given.name or None))
    name = point.name or point.id
    text = f'Snapshot {name} of {chosen.name} is taken: rollback_machine(to="{name}") goes back to it. {chosen.note or ""}'
    return Answer(text.rstrip(), Snapshotted(machine=chosen.name, snapshot=point, note=chosen.note))


class ListSnapshots(Arguments):
    machine: MachineName = ""


class SnapshotList(Data):
    machine: str
    snapshots: list[Point]


async def list_snapshots(call: Call, given: ListSnapshots) -> Answer:
    machine = await call.existing(given.machine)
    found = [_point(one) for one in await machine.snapshots()]
    note = f"Only the first {LISTED_MAX} of {len(found)} are listed." if len(found) > LISTED_MAX else None
    found = found[:LISTED_MAX]
    lines = [f"{one.id}  {one.name or '(no name)'}  after instruction {one.instruction}  {one.created_at}" for one in found]
    text = "\n".join(lines) or f"{machine.name} has no snapshots yet."
    return Answer(f"{text}\n{note}" if note else text, SnapshotList(machine=machine.name, snapshots=found, note=note))


class RollbackMachine(Arguments):
    to: Annotated[SnapshotName, Field(description="Name or id of a snapshot. Without it and without an instruction: the newest.")] = ""
    instruction: Annotated[int, Field(ge=-1, description="Instead of `to`: the state right after this instruction, where one was kept.")] = -1
    machine: MachineName = ""


class RolledBack(Data):
    machine: str
    snapshot: Point
    undo: str | None = Field(default=None, description="Give it as `to` to undo this.")


async def rollback_machine(call: Call, given: RollbackMachine) -> Answer:
    machine = await call.existing(given.machine)
    target = given.to or (given.instruction if given.instruction >= 0 else None)
    done = await machine.rollback(target)
    point = _point(done.snapshot)
    undo = f' rollback_machine(to="{done.undo}") undoes this.' if done.undo else ""
    text = f"{machine.name} is back at {point.name or point.id} of {point.created_at}: its variables and files are those of then.{undo}"
    return Answer(text, RolledBack(machine=machine.name, snapshot=point, undo=done.undo))


class ResetMachine(Arguments):
    machine: MachineName = ""


class WasReset(Data):
    machine: str
    undo: str | None = Field(default=None, description="Give it to rollback_machine as `to` to undo this.")


async def reset_machine(call: Call, given: ResetMachine) -> Answer:
    machine = await call.existing(given.machine)
    undo = await machine.reset()
    back = f' rollback_machine(to="{undo}") brings back what was before.' if undo else ""
    return Answer(f"{machine.name} begins anew: no variables, no files.{back}", WasReset(machine=machine.name, undo=undo))


def _point(found: api.Snapshot) -> Point:
    return Point(id=found.id, name=found.name, instruction=found.instruction, created_at=found.created_at)


SNAPSHOT = Tool(
    "snapshot_machine",
    "Snapshot a machine",
    """Keep the present state of a machine, memory and files, to go back to with rollback_machine.

Use it before something that may go wrong: a migration, deleting files, an experiment on data that took long to load.

Example: {"name": "before-cleaning"}""",
    SnapshotMachine,
    Snapshotted,
    changes(),
    snapshot_machine,
)
LIST = Tool(
    "list_snapshots",
    "List snapshots",
    """List the snapshots that a machine can go back to: those with names, and those that it made by itself when it slept.

Example: {}""",
    ListSnapshots,
    SnapshotList,
    reads(),
    list_snapshots,
)
ROLLBACK = Tool(
    "rollback_machine",
    "Roll a machine back",
    """Take a machine back to a snapshot: its variables and files become those of then. What is there now is saved first, and the answer says how
to undo it.

Use it after a mistake that changed data or files, or when a machine is broken.

Examples: {"to": "before-cleaning"}; {"instruction": 7}""",
    RollbackMachine,
    RolledBack,
    changes(destructive=True),
    rollback_machine,
)
RESET = Tool(
    "reset_machine",
    "Reset a machine",
    """Begin a machine anew: a fresh interpreter and fresh files. What is there now is saved first, and the answer says how to undo it.

Example: {}""",
    ResetMachine,
    WasReset,
    changes(destructive=True),
    reset_machine,
)
