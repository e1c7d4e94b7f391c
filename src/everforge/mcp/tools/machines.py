"""Machines: which there are, more of them, copies, and their end."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from ..answers import Answer
from ..calls import Call
from ..limits import LISTED_MAX, NAME_CHARACTERS_MAX
from .base import Arguments, Data, MachineName, Tool, changes, reads

NewName = Annotated[
    str, Field(max_length=NAME_CHARACTERS_MAX, description="Small letters, digits and hyphens, as my-analysis. Without one a name is made up.")
]
Named = Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS_MAX, description="Name of a machine.")]


class OneMachine(Data):
    machine: str


class NewMachine(Arguments):
    name: NewName = ""


async def new_machine(call: Call, given: NewMachine) -> Answer:
    made = await call.client.create(given.name or None)
    text = f'Made {made.name}. Give machine="{made.name}" to the other tools, or make it this conversation\'s own with use_machine.'
    return Answer(text, OneMachine(machine=made.name))


class ListMachines(Arguments):
    prefix: Annotated[str, Field(max_length=NAME_CHARACTERS_MAX, description="Only names that begin so.")] = ""
    limit: Annotated[int, Field(ge=1, le=LISTED_MAX)] = 50


class ListedMachine(BaseModel):
    name: str
    state: str = Field(description="ready, busy, asleep (wakes by itself when it is used), broken, ...")
    last_used_at: str
    created_at: str
    mine: bool = Field(description="Is it the machine of this conversation?")


class MachineList(Data):
    machines: list[ListedMachine]


async def list_machines(call: Call, given: ListMachines) -> Answer:
    mine = await call.conversation.existing(call.client)
    found: list[ListedMachine] = []
    note = None
    async for one in call.client.machines(prefix=given.prefix or None):
        if len(found) == given.limit:
            note = f"There are more than {given.limit}: give a prefix or a higher limit."
            break
        is_mine = mine is not None and one.name == mine.name
        found.append(ListedMachine(name=one.name, state=one.state, last_used_at=one.last_used_at, created_at=one.created_at, mine=is_mine))
    lines = [f"{one.name}  {one.state}  last used {one.last_used_at}{'  (of this conversation)' if one.mine else ''}" for one in found]
    return Answer(
        "\n".join([*(lines or ["There are no machines yet: run_python makes one."]), *([note] if note else [])]),
        MachineList(machines=found, note=note),
    )


class UseMachine(Arguments):
    machine: Named


async def use_machine(call: Call, given: UseMachine) -> Answer:
    await call.conversation.use(call.client, given.machine)
    return Answer(f"{given.machine} is this conversation's machine from now on.", OneMachine(machine=given.machine))


class ForkMachine(Arguments):
    machine: MachineName = ""
    name: NewName = ""


class Forked(Data):
    machine: str = Field(description="The copy.")
    forked_from: str


async def fork_machine(call: Call, given: ForkMachine) -> Answer:
    chosen = await call.machine(given.machine)
    copy = await chosen.machine.fork(given.name or None)
    await _forget_conversation(call, copy.name)
    text = f'{copy.name} is a copy of {chosen.name}, with its variables and files as they are now. Give machine="{copy.name}" to work in it.'
    return Answer(f"{text} {chosen.note or ''}".rstrip(), Forked(machine=copy.name, forked_from=chosen.name, note=chosen.note))


async def _forget_conversation(call: Call, name: str) -> None:
    """A copy has the tags of what it was copied from, and a conversation has one machine."""
    from ..conversations import TAG

    copy = call.client.machine(name)
    tags = (await copy.info()).tags
    if TAG in tags:
        await copy.update(tags={key: value for key, value in tags.items() if key != TAG})


class DeleteMachine(Arguments):
    machine: Named


async def delete_machine(call: Call, given: DeleteMachine) -> Answer:
    await call.client.machine(given.machine).delete()
    return Answer(f"{given.machine} is deleted, with its variables, files and snapshots.", OneMachine(machine=given.machine))


NEW = Tool(
    "new_machine",
    "New machine",
    """Make one more machine, empty and fresh, and get its name. You do not need this to begin: run_python has a machine of its own for this
conversation.

Use it to keep two pieces of work apart, or to try something where nothing can be broken.

Example: {"name": "second-opinion"}""",
    NewMachine,
    OneMachine,
    changes(),
    new_machine,
)
LIST = Tool(
    "list_machines",
    "List machines",
    """List the machines there are, newest first, with their states and which one belongs to this conversation. Machines that sleep wake by
themselves.

Example: {}""",
    ListMachines,
    MachineList,
    reads(),
    list_machines,
)
USE = Tool(
    "use_machine",
    "Use a machine",
    """Make a machine the one of this conversation: from then on run_python and the others use it when no machine is named. The one before stays
as it is.

Use it to go on with work of an earlier conversation: list_machines shows which there are.

Example: {"machine": "my-analysis"}""",
    UseMachine,
    OneMachine,
    changes(idempotent=True),
    use_machine,
)
FORK = Tool(
    "fork_machine",
    "Fork a machine",
    """Copy a live machine, memory and files and all, and get the name of the copy. Both go their own ways from there.

Use it to try several ways on from the same loaded data, or before something risky.

Example: {"name": "what-if"}""",
    ForkMachine,
    Forked,
    changes(),
    fork_machine,
)
DELETE = Tool(
    "delete_machine",
    "Delete a machine",
    """Delete a machine for ever, with its variables, files and snapshots. This cannot be undone. Delete only what you made yourself or were asked
to delete.

Machines that are not used cost disk space only: there is no need to tidy up.

Example: {"machine": "what-if"}""",
    DeleteMachine,
    OneMachine,
    changes(destructive=True),
    delete_machine,
)
