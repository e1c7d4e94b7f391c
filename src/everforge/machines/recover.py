"""After a restart: what does the record say, is a sandbox alive, did it get its `go`? One matrix, no second code path for crashes.

Reads every record that was on its way, asks the engine what still lives, takes the living over and applies the same arrows for the rest.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from everforge.engine.base import Ending, How, Sandbox
from everforge.store.base import MachineQuery, MachineRecord
from everforge.wire.errors import EverforgeError, ProtocolError, SandboxLost
from everforge.wire.events import START, Accepted
from everforge.wire.ids import MachineId, SandboxId
from everforge.wire.messages import Hello

from . import deletion
from .agenda import Instruction, Work
from .calls import Calls
from .guestline import GuestLine
from .incarnation import Incarnation
from .keeper import Keeper, RunningTurn
from .lifecycle import Arrow, Residence
from .weir import Flow

if TYPE_CHECKING:
    from .forge import Forge

log = logging.getLogger(__name__)
PAGE = 500
Start = Callable[[], Keeper]
LOST_WITH_ITS_PROCESS = Ending(How.LOST, "its host process was gone when the server started")
LOST_WITH_THE_COMPUTER = Ending(How.LOST, "the computer went down while it was awake")


class Guest(enum.StrEnum):
    """What became of the sandbox that the record names."""

    GONE = "gone"
    FROZEN = "frozen"  # alive, without a `go`
    WENT = "went"  # alive, and user processes have run


class Action(enum.StrEnum):
    NOTHING = "nothing"
    TAKE_OVER = "take over"  # with the arrow that the crash cut off
    DESTROY_AND_MOVE = "destroy and move"
    CREATE_AGAIN = "create again"
    LOSE = "lose"
    DELETE = "delete"


R, G, X = Residence, Guest, Action

MATRIX: Mapping[tuple[Residence, Guest], tuple[Action, Arrow | None]] = {
    (R.CREATING, G.GONE): (X.CREATE_AGAIN, None),
    (R.CREATING, G.FROZEN): (X.CREATE_AGAIN, None),
    (R.CREATING, G.WENT): (X.TAKE_OVER, Arrow.STARTED),
    (R.AWAKE, G.GONE): (X.LOSE, None),
    (R.AWAKE, G.FROZEN): (X.TAKE_OVER, None),
    (R.AWAKE, G.WENT): (X.TAKE_OVER, None),
    (R.SAVING, G.GONE): (X.LOSE, None),
    (R.SAVING, G.FROZEN): (X.TAKE_OVER, Arrow.SAVE_ENDED),
    (R.SAVING, G.WENT): (X.TAKE_OVER, Arrow.SAVE_ENDED),
    (R.HIBERNATING, G.GONE): (X.LOSE, None),
    (R.HIBERNATING, G.FROZEN): (X.TAKE_OVER, Arrow.WANTED_AGAIN),
    (R.HIBERNATING, G.WENT): (X.TAKE_OVER, Arrow.WANTED_AGAIN),
    (R.ASLEEP, G.GONE): (X.NOTHING, None),
    (R.ASLEEP, G.FROZEN): (X.NOTHING, None),  # its sandbox is claimed by no record, and goes as an orphan
    (R.ASLEEP, G.WENT): (X.NOTHING, None),
    (R.WAKING, G.GONE): (X.DESTROY_AND_MOVE, Arrow.WAKE_FAILED),
    (R.WAKING, G.FROZEN): (X.DESTROY_AND_MOVE, Arrow.WAKE_FAILED),
    (R.WAKING, G.WENT): (X.TAKE_OVER, Arrow.WOKEN),
    (R.BROKEN, G.GONE): (X.NOTHING, None),
    (R.BROKEN, G.FROZEN): (X.NOTHING, None),
    (R.BROKEN, G.WENT): (X.NOTHING, None),
    (R.DELETING, G.GONE): (X.DELETE, None),
    (R.DELETING, G.FROZEN): (X.DELETE, None),
    (R.DELETING, G.WENT): (X.DELETE, None),
}

ON_THEIR_WAY = frozenset(str(r) for r in Residence) - {str(R.ASLEEP), str(R.BROKEN), str(R.DELETED)}


async def recover(forge: Forge) -> None:
    """Everything that was on its way, then everything that nobody claims."""
    survivors = dict(await forge.engine.survivors())
    if await forge.store.unclean_boot():
        log.warning("the computer went down while a server was running: what was awake is back at its last snapshot")
        forge.why_gone = LOST_WITH_THE_COMPUTER
    starts, failed = await _recover_all(forge, survivors)
    await asyncio.gather(*(_destroy(sandbox) for sandbox in survivors.values()))
    # Partial folders go now: a sandbox that was being saved wrote on until its save was over, and taking it over has waited for that; and no
    # keeper that could begin a new one is running yet.
    await _tidy(forge)
    for start in starts:
        start()
    await _start_waiting(forge)
    for id in failed:  # last: one at a time opens a machine
        forge.reopen(id)


async def _tidy(forge: Forge) -> None:
    """A disk that is full, or fails at it, must not keep a server from starting: the next start tidies up."""
    try:
        await forge.snapshots.sweep(await forge.store.referenced_snapshots() | forge.templates.in_use, True)
        await forge.store.purge_deleted(time.time() - forge.settings.deleted_kept_seconds)
    except EverforgeError as e:
        log.warning("snapshots and records that nobody needs could not be removed, and stay until the next start: %s", e.message)


async def _recover_all(forge: Forge, survivors: dict[SandboxId, Sandbox]) -> tuple[list[Start], list[MachineId]]:
    """What starts the keepers of those that live on; and those that could not be put right."""
    starts: list[Start] = []
    failed: list[MachineId] = []
    query = MachineQuery(residences=ON_THEIR_WAY, limit=PAGE)
    while page := await forge.store.machines(query):
        claimed = [(record, survivors.pop(record.sandbox, None) if record.sandbox else None) for record in page]
        found = await asyncio.gather(*(_recover_safely(forge, record, sandbox) for record, sandbox in claimed))
        starts += [start for start in found if callable(start)]
        failed += [MachineId(id) for id in found if isinstance(id, str)]
        last = page[-1]
        query = MachineQuery(residences=ON_THEIR_WAY, limit=PAGE, before=(last.created_at, last.id))
    return starts, failed


async def open_keeper(forge: Forge, record: MachineRecord) -> Keeper:
    """A keeper for a machine that has none. One that should have a sandbox is recovered first, as after a restart: its keeper failed."""
    if record.residence in ON_THEIR_WAY:
        survivors = await forge.engine.survivors()
        sandbox = survivors.get(record.sandbox) if record.sandbox else None
        if start := await recover_one(forge, record, sandbox):
            return start()
        record = await forge.store.machine(record.id) or record
    keeper = forge.adopt(record)
    await _queue_unended(keeper)
    return _start(forge, keeper)


async def _recover_safely(forge: Forge, record: MachineRecord, sandbox: Sandbox | None) -> Start | MachineId | None:
    """One machine that cannot be put right must not keep the others from being so; it is tried again soon, and whenever it is wanted."""
    try:
        return await recover_one(forge, record, sandbox)
    except Exception:
        log.exception("machine %s could not be recovered, and is tried again", record.name)
        return record.id


def _start(forge: Forge, keeper: Keeper, inherited: RunningTurn | None = None) -> Keeper:
    """From here on callers find it, and what they ask for stands behind what was accepted before."""
    forge.keepers.add(keeper)
    keeper.start(inherited)
    return keeper


async def recover_one(forge: Forge, record: MachineRecord, sandbox: Sandbox | None) -> Start | None:
    """Put one machine right. Where it goes on living, returns what starts its keeper.

    Raises DiskFull where that cannot be recorded: who waits for room here would keep a server from starting, and this machine from being deleted.
    """
    guest, line, hello = await _ask(forge, record, sandbox)
    action, arrow = MATRIX[Residence(record.residence), guest]
    log.info("machine %s was %s, of its guest: %s; %s", record.name, record.residence, guest, action)
    if sandbox is not None and action is not Action.TAKE_OVER:
        await _destroy(sandbox)
    match action:
        case Action.NOTHING:
            pass
        case Action.DELETE:
            await deletion.delete(forge, record)
        case Action.DESTROY_AND_MOVE:
            assert arrow is not None
            keeper = forge.adopt(record)
            await keeper.dossier.write(arrow, set={"sandbox": None, "error": "the server stopped while it was waking"}, patient=False)
        case Action.CREATE_AGAIN:
            keeper = forge.adopt(record)
            await _queue_unended(keeper)
            return lambda: _start(forge, keeper)
        case Action.LOSE:
            keeper = forge.adopt(record)
            await _queue_unended(keeper)
            keeper.dossier.awake_until = record.last_used_at  # and not over the time that the server, or the whole computer, was down
            await keeper.residency.lose(forge.why_gone, record.next_instruction - 1, patient=False)
        case Action.TAKE_OVER:
            assert sandbox is not None
            assert line is not None
            assert hello is not None
            return await _take_over(forge, record, arrow, sandbox, line, hello)
    return None


async def _ask(forge: Forge, record: MachineRecord, sandbox: Sandbox | None) -> tuple[Guest, GuestLine | None, Hello | None]:
    """A guest is gone when its line says so, and for no other reason: what the store raises says nothing about it, and is raised."""
    if sandbox is None:
        return Guest.GONE, None, None
    have = await forge.store.received(record.id, record.epoch)
    saving = record.residence in (Residence.SAVING, Residence.HIBERNATING)  # it answers when its save is over, and that cannot be hurried
    patience = forge.settings.save_seconds if saving else forge.settings.guest_answer_seconds
    line = GuestLine(sandbox.link, Flow(forge.weir, record.id))
    try:
        hello = await line.attach(record.epoch, have, patience)
    except (SandboxLost, ProtocolError) as e:
        log.warning("the sandbox of machine %s does not answer: %s", record.name, e)
        return Guest.GONE, None, None
    return Guest.FROZEN if hello.frozen else Guest.WENT, line, hello


async def _take_over(forge: Forge, record: MachineRecord, arrow: Arrow | None, sandbox: Sandbox, line: GuestLine, hello: Hello) -> Start:
    keeper = forge.adopt(record)
    housing = keeper.residency.housing
    forge.admission.take_over(record.id, record.memory_mb, record.account)
    housing.incarnation = incarnation = Incarnation(sandbox, line, keeper.dossier, forge.settings, housing.errands, forge.doors)
    try:
        inherited = await _continue(forge, keeper, incarnation, hello)
        if arrow is not None:
            await keeper.dossier.write(arrow, patient=False)  # first: from here on it is awake for everybody, also if it is lost the next moment
        await _go_on(keeper, incarnation, hello)
    except BaseException:
        await incarnation.close()
        forge.admission.release(record.id)
        raise
    return lambda: _start(forge, keeper, inherited)


async def _continue(forge: Forge, keeper: Keeper, incarnation: Incarnation, hello: Hello) -> RunningTurn | None:
    """Reads on where the last keeper stopped. What the guest was at is returned, if it is a turn."""
    record, housing = keeper.dossier.record, keeper.residency.housing
    incarnation.continue_background(await forge.store.outputs(record.id, None))
    housing.effects = await _effects(forge, record, hello)
    inherited: RunningTurn | None = None
    if (taken := await _queue_unended(keeper, hello)) is not None:
        next_seq = await forge.store.outputs(record.id, taken.number)
        calls = await _calls(keeper, taken)
        if calls is not None:
            calls.arrive(hello.calls)
        inherited = RunningTurn(taken, hello.running_ms / 1000, incarnation.expect_end(taken.number, next_seq, calls), calls)
        housing.effects = taken.number - 1 if taken.number else None  # as long as it has no end
    elif hello.last is not None:
        incarnation.expect_stray(hello.last)  # it was being let go of
    incarnation.begin()
    keeper.residency.notice_loss()
    return inherited


async def _go_on(keeper: Keeper, incarnation: Incarnation, hello: Hello) -> None:
    """The limits of this server's settings count; what its user made of the environment meanwhile stays."""
    try:
        housing = keeper.residency.housing
        surroundings = await housing.doors.surroundings(keeper.dossier.record)
        await incarnation.set_up(dict(surroundings.env), housing.guest_limits(), surroundings.files)
        if hello.frozen:
            await incarnation.go()
        if hello.running is not None and keeper.expected != hello.running:
            await incarnation.let_go(hello.running)
    except SandboxLost as e:  # the keeper finds it so, and says what is lost
        log.warning("machine %s was lost while it was taken over: %s", keeper.dossier.record.name, e)


async def _effects(forge: Forge, record: MachineRecord, hello: Hello) -> int | None:
    """The last instruction whose effects the memory holds: one of this epoch, or else those of the snapshot it came from."""
    if hello.last is not None:
        return hello.last
    points = await forge.store.points(record.id)
    return next((p.instruction for p in reversed(points) if p.snapshot == record.head), None)


async def _queue_unended(keeper: Keeper, hello: Hello | None = None) -> Instruction | None:
    """What was accepted and has no end. The guest may have taken the first of it: that is returned, a turn to go on with and not one to start."""
    taken: Instruction | None = None
    for event in await keeper.dossier.store.unended(keeper.id):
        assert isinstance(event, Accepted)
        instruction = Instruction(event.instruction, Work(event.code, event.timeout_seconds, event.env, event.functions))
        if hello is not None and hello.last is not None and event.instruction <= hello.last:
            taken = instruction
            keeper.expect(instruction)
        elif hello is None and (calls := await _calls(keeper, instruction)) is not None and calls.any:
            await _suspend(keeper, instruction, calls)
        else:
            keeper.enqueue(instruction)
    return taken


async def _calls(keeper: Keeper, instruction: Instruction) -> Calls | None:
    functions = instruction.work.functions
    return Calls(functions, await keeper.dossier.store.calls(keeper.id, instruction.number)) if functions else None


async def _suspend(keeper: Keeper, instruction: Instruction, calls: Calls) -> None:
    """It has begun, and sleeps with its machine: it goes on where it is, and must never be begun again."""
    points = await keeper.dossier.store.points(keeper.id)
    head = next((p.position for p in reversed(points) if p.snapshot == keeper.dossier.record.head), START)
    calls.expect_answers_after(head)
    keeper.suspend(instruction, calls)


async def _start_waiting(forge: Forge) -> None:
    """Machines at rest for which instructions were accepted just before the crash."""
    for id in await forge.store.machines_with_unended():
        if id not in forge.keepers and (record := await forge.store.machine(id)):
            try:
                await open_keeper(forge, record)
            except Exception:
                log.exception("what waits for machine %s could not be started", record.name)


async def _destroy(sandbox: Sandbox) -> None:
    sandbox.link.close()
    await sandbox.destroy()
