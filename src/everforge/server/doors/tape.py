"""The tape by cursor: as JSON, as lines of JSON, as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response, StreamingResponse

from everforge.wire import api
from everforge.wire.errors import DiskFull, InstructionNotFound, InvalidInput, MachineNotFound, TooManyStreams
from everforge.wire.events import START, Ended, Event

from ..answers import departing, departing_part, to_json
from ..bounds import POSITION_MAX
from ..calls import Call
from ..departures import in_pieces
from ..numbers import whole
from ..routes import Routes
from ..streams import Revoked, with_signs_of_life
from ..views import entry

routes = Routes("tape")
LINES, EVENTS = "application/x-ndjson", "text/event-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class TapeQuery(api.Query):
    after: int | None = None
    limit: int | None = None
    follow: bool = False
    instruction: int | None = None  # only what belongs to this one, up to its end


@routes.add(
    "GET",
    "/v1/machine/{name}/tape",
    scope="read",
    errors=(MachineNotFound, InstructionNotFound, TooManyStreams, DiskFull),
    answer=api.Tape,
    media=("application/json", LINES, EVENTS),
)
async def read_tape(call: Call, query: TapeQuery) -> Response:
    """Everything that happened to a machine after a position. The Accept header chooses the form; the two streams may follow it live."""
    accept = call.request.headers.get("accept", "")
    after = _after(call, query)
    if query.limit is not None and query.limit < 1:
        raise InvalidInput("limit must be above 0")
    if not START <= after <= POSITION_MAX:
        raise InvalidInput(f"after must be a position of the tape, from {START} to {POSITION_MAX}")
    await call.machines.get(call.name)  # refused before the first byte
    if query.instruction is not None:
        accepted = await call.machines.instruction(call.name, query.instruction)
        after = max(after, accepted.position - 1)
        if query.follow:
            call.machines.check_recordable(call.name, query.instruction)
    if EVENTS in accept:
        return _stream(call, _events(call, query, after), EVENTS, b": \n\n")
    if LINES in accept:
        return _stream(call, _lines(call, query, after), LINES, b" ")
    if query.follow:
        raise InvalidInput(f"to follow a tape, ask for a stream: Accept: {LINES} or {EVENTS}")
    return await departing(call.service.departures, await _page(call, query, after))


def _after(call: Call, query: TapeQuery) -> int:
    if (last := whole(call.request.headers.get("last-event-id", ""))) is not None:
        return last
    return START if query.after is None else query.after


def _stream(call: Call, parts: AsyncGenerator[bytes], media: str, sign: bytes) -> Response:
    guarded = with_signs_of_life(call.service.streams.guarded(call.identity, parts), sign, call.service.settings.quiet_seconds)

    async def until_revoked() -> AsyncGenerator[bytes]:
        yield sign  # headers at once
        try:
            async for part in guarded:
                yield part
        except Revoked:
            return

    return StreamingResponse(in_pieces(until_revoked()), media_type=media, headers={"Cache-Control": "no-store"})


async def _entries(call: Call, query: TapeQuery, after: int) -> AsyncGenerator[dict[str, Any]]:
    left = query.limit
    async for event in _read(call, query, after):
        yield entry(event)
        if left is not None and (left := left - 1) == 0:
            return


async def _read(call: Call, query: TapeQuery, after: int) -> AsyncGenerator[Event]:
    awaited = query.instruction if query.follow else None
    async for event in call.machines.read(call.name, after, follow=query.follow, instruction=awaited):
        if query.instruction is None or getattr(event, "instruction", None) == query.instruction:
            yield event
        if isinstance(event, Ended) and event.instruction == query.instruction:
            return


async def _lines(call: Call, query: TapeQuery, after: int) -> AsyncGenerator[bytes]:
    async for found in _entries(call, query, after):
        async for part in departing_part(call.service.departures, found, call.service.settings.write_seconds, b"%s\n"):
            yield part


async def _events(call: Call, query: TapeQuery, after: int) -> AsyncGenerator[bytes]:
    async for found in _entries(call, query, after):
        form = b"id: %d\nevent: %s\ndata: %%s\n\n" % (found["cursor"], found["type"].encode())
        async for part in departing_part(call.service.departures, found, call.service.settings.write_seconds, form):
            yield part


async def _page(call: Call, query: TapeQuery, after: int) -> dict[str, Any]:
    settings = call.service.settings
    most = settings.tape_entries_max if query.limit is None else query.limit
    if not 1 <= most <= settings.tape_entries_max:
        raise InvalidInput(f"limit must be from 1 to {settings.tape_entries_max} entries")
    found: list[dict[str, Any]] = []
    position, size, more = after, 0, False
    async for event in _read(call, query, after):
        if len(found) == most or size > settings.tape_bytes_max:
            more = True
            break
        found.append(entry(event))
        position = found[-1]["cursor"]
        size += len(to_json(found[-1]))
    return {"entries": found, "position": position, "more": more}
