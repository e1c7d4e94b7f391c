"""Instructions: give one, wait for its result, stream its output, list them. ForeverVM's routes, and ours beside them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

from starlette.background import BackgroundTask
from starlette.responses import Response, StreamingResponse

from everforge.machines.service import Completion, Machines, Running
from everforge.wire import api
from everforge.wire.errors import (
    DiskFull,
    GuestTooOld,
    InstructionNotFound,
    InvalidInput,
    KeyReused,
    MachineBroken,
    MachineFailed,
    MachineNotFound,
    NoCapacity,
    QueueFull,
    TooManyStreams,
    WrongState,
)
from everforge.wire.events import Accepted, Displayed, Ended, Event, Output, Position

from ..answers import departing, departing_part, to_json
from ..calls import Call
from ..departures import in_pieces
from ..numbers import whole
from ..routes import Routes
from ..service import Service
from ..streams import Cut, Revoked, with_signs_of_life
from ..times import to_wire
from ..views import result
from ..witness import hash_of_code
from .displays import Displays, in_one_frame
from .wholelines import WholeLines

routes = Routes("instructions")
STREAMED = (MachineNotFound, InstructionNotFound, TooManyStreams, DiskFull)


@routes.add(
    "POST", "/v1/machine/{name}/exec", action="machine.exec", scope="exec", keyed=True,
    errors=(MachineNotFound, MachineBroken, QueueFull, KeyReused, DiskFull),
    example={"instruction": {"code": "x = 6 * 7\nx", "timeout_seconds": 15}},
)  # fmt: skip
async def give(call: Call, body: api.Exec) -> api.Accepted:
    """Give a machine an instruction. Answers as soon as it is accepted; a sleeping machine is woken behind the answer."""
    number, interrupted = await call.machines.exec(
        call.name, body.instruction.code, **options(body.instruction), interrupt=bool(body.interrupt), key=call.key
    )
    call.notes["code_sha256"] = hash_of_code(body.instruction.code)
    return api.Accepted(instruction_seq=number, interrupted=interrupted, machine=call.name)


def options(text: api.InstructionText) -> dict[str, Any]:
    return {"timeout_seconds": text.timeout_seconds, "env": text.env, "functions": text.functions}


@routes.add("GET", "/v1/machine/{name}/exec/{seq}/result", scope="read", errors=STREAMED, answer=api.InstructionResult)
async def wait_for_result(call: Call) -> Response:
    """Wait for an instruction's result. A long wait begins with spaces, which JSON allows before its first character."""
    seq = number(call)
    waiting = asyncio.ensure_future(find_result(call.machines, call.name, seq))

    async def give_up() -> None:  # also when the client is gone before the answer has begun
        waiting.cancel()

    try:
        await asyncio.wait([waiting], timeout=call.service.settings.early_seconds)
        if waiting.done():
            return await departing(call.service.departures, instruction_result(seq, waiting.result()))
        parts = call.service.streams.guarded(call.identity, _with_space(call.service, seq, waiting))
    except BaseException:
        await give_up()
        raise
    return StreamingResponse(in_pieces(_long_wait(call, parts)), media_type="application/json", background=BackgroundTask(give_up))


async def _with_space(service: Service, seq: int, waiting: asyncio.Future[dict[str, Any]]) -> AsyncGenerator[bytes]:
    yield b" "
    async for part in departing_part(service.departures, instruction_result(seq, await waiting), service.settings.write_seconds):
        yield part


async def _long_wait(call: Call, parts: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    try:
        async for part in with_signs_of_life(parts, b" ", call.service.settings.quiet_seconds):
            yield part
    except Revoked:
        raise Cut from None  # spaces are no result


def instruction_result(seq: int, found: dict[str, Any]) -> dict[str, Any]:
    return {"instruction_id": seq, "instruction_seq": seq, "result": found}


def number(call: Call) -> int:
    if (found := whole(call.path("seq"))) is None:
        raise InvalidInput("an instruction is named by its number, from 0")
    return found


async def find_result(machines: Machines, name: str, seq: int) -> dict[str, Any]:
    ended = await machines.result(name, seq)
    shown = Displays()
    if ended.displays != 0:
        for event in await machines.displayed(name, seq):
            shown.add(event.data)
    return result(ended, shown.bundles)


@routes.add(
    "GET", "/v1/machine/{name}/exec/{seq}/stream-result", scope="read", errors=STREAMED,
    media=("application/x-ndjson",),
)  # fmt: skip
async def stream_result(call: Call) -> Response:
    """Output of an instruction from its first line on, then its result, as lines of JSON; also after its end."""
    seq = number(call)
    accepted = await call.machines.instruction(call.name, seq)
    call.machines.check_recordable(call.name, seq)
    lines = call.service.streams.guarded(call.identity, _lines(call, seq, accepted.position))
    parts = _until_revoked(with_signs_of_life(lines, b" ", call.service.settings.quiet_seconds))
    return StreamingResponse(in_pieces(parts), media_type="application/x-ndjson")


async def _until_revoked(parts: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    try:
        async for part in parts:
            yield part
    except Revoked:
        return


async def _lines(call: Call, seq: int, accepted: Position) -> AsyncGenerator[bytes]:
    yield b" "  # headers at once
    told = Told(seq)
    service = call.service
    async for event in call.machines.read(call.name, accepted, follow=True, instruction=seq):
        *small, last = told.of(event) or [None]
        if small:
            yield b"".join(to_json(message) + b"\n" for message in small)
        if last:
            async for part in departing_part(service.departures, last, service.settings.write_seconds, b"%s\n"):
                yield part
        if told.over:
            return


class Told:
    """What ForeverVM's clients hear of one instruction: its output in whole lines, then its result; nothing else."""

    def __init__(self, seq: int) -> None:
        self.seq = seq
        self.over = False
        self._lines = WholeLines()
        self._displays = Displays()

    def of(self, event: Event) -> list[dict[str, Any]]:
        match event:
            case Output(instruction=self.seq):
                return [self._output(chunk) for chunk in self._lines.add(event)]
            case Displayed(instruction=self.seq):
                self._displays.add(event.data)
            case Ended(instruction=self.seq):
                self.over = True
                rest = [self._output(chunk) for chunk in self._lines.rest()]
                return [*rest, {"type": "result", **instruction_result(self.seq, in_one_frame(result(event, self._displays.bundles)))}]
            case _:
                pass
        return []

    def _output(self, chunk: dict[str, Any]) -> dict[str, Any]:
        return {"type": "output", "chunk": chunk, "instruction_id": self.seq}


# --- ours --------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionsQuery(api.Query):
    after: int = -1
    limit: int = 100


@routes.add("GET", "/v1/machine/{name}/exec", scope="read", errors=(MachineNotFound,))
async def list_instructions(call: Call, query: InstructionsQuery) -> api.InstructionList:
    """Instructions of a machine, oldest first. Large ones come a few at a time: `next` tells whether there are more."""
    limit, most = query.limit, call.service.settings.list_max
    if not 1 <= limit <= most:
        raise InvalidInput(f"limit must be from 1 to {most} instructions")
    found, more = await call.machines.instructions(call.name, query.after, limit)
    running = call.machines.running(call.name)
    shown = [_instruction(accepted, ended, running) for accepted, ended in found]
    return api.InstructionList(instructions=shown, next=shown[-1].instruction_seq if more else None)


@routes.add("GET", "/v1/machine/{name}/exec/{seq}", scope="read", errors=(MachineNotFound, InstructionNotFound))
async def show_instruction(call: Call) -> api.Instruction:
    """One instruction, and its result if it has ended. Does not wait."""
    seq = number(call)
    found, _ = await call.machines.instructions(call.name, seq - 1, 1)
    if not found or found[0][0].instruction != seq:
        raise InstructionNotFound(f"machine {call.name} has no instruction {seq}")
    return _instruction(*found[0], call.machines.running(call.name))


def _state(number: int, ended: Ended | None, running: Running | None) -> api.InstructionState:
    if ended is not None:
        return "ended"
    if running is None or running.instruction != number:
        return "queued"
    return "waiting" if running.waits else "running"


def _instruction(accepted: Accepted, ended: Ended | None, running: Running | None) -> api.Instruction:
    return api.Instruction(
        instruction_seq=accepted.instruction,
        code=accepted.code,
        timeout_seconds=accepted.timeout_seconds,
        state=_state(accepted.instruction, ended, running),
        accepted_at=to_wire(accepted.time),
        position=accepted.position,
        result=None if ended is None else api.Result(**result(ended)),
    )


@routes.add(
    "POST",
    "/v1/machine/{name}/interrupt",
    action="machine.interrupt",
    scope="exec",
    errors=(MachineNotFound, InstructionNotFound),
    example={"pending": True},
)
async def interrupt(call: Call, body: api.Interrupt | None = None) -> api.Interrupted:
    """Interrupt what runs, what waits too if asked, or one instruction. Code that goes on all the same is killed by a second interrupt."""
    return api.Interrupted(interrupted=await call.machines.interrupt(call.name, **which(body or api.Interrupt())))


def which(wanted: api.Interrupt) -> dict[str, Any]:
    return {"pending": bool(wanted.pending), "instruction": wanted.instruction}


@routes.add(
    "POST", "/v1/machine/{name}/complete", action=None, scope="exec", errors=(MachineNotFound, MachineBroken, MachineFailed, GuestTooOld, NoCapacity),
    example={"code": "import nu"},
)  # fmt: skip
async def complete(call: Call, body: api.Complete) -> api.Completed:
    """What the live interpreter would complete the code with. One that is busy is not asked."""
    return completed(await call.machines.complete(call.name, body.code, body.cursor))


@routes.add(
    "POST", "/v1/machine/{name}/exec/{seq}/calls/{call}", action="machine.answer", scope="exec",
    errors=(MachineNotFound, InstructionNotFound, WrongState, MachineBroken), example={"value": 42},
)  # fmt: skip
async def answer_call(call: Call, body: api.Answer) -> api.Answered:
    """Answer a call of a function of the client's program, once. A sleeping machine is woken behind it, and its code goes on."""
    if (asked := whole(call.path("call"))) is None:
        raise InvalidInput("a call is named by its number, from 0")
    await call.machines.answer(call.name, number(call), asked, value=body.value, error=body.error)
    return api.Answered(answered=True)


def completed(found: Completion) -> api.Completed:
    return api.Completed(matches=list(found.matches), start=found.start, end=found.end, busy=found.busy)
