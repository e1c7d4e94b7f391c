"""Words that all transcripts are written in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from everforge import __version__
from everforge.server.answers import error_body, plain
from everforge.server.views import entry
from everforge.wire import api, errors
from everforge.wire.events import Accepted, Ended, Event, Output, Position

Json = Any
VERSION = {"x-everforge-version": __version__}
KEY = {"idempotency-key": "key"}
NDJSON = {"accept": {"$has": "application/x-ndjson"}}
TIME = 1_900_000_000.0
made: dict[str, Callable[[], dict[str, Json]]] = {}


def transcript(make: Callable[[], dict[str, Json]]) -> Callable[[], dict[str, Json]]:
    made[make.__name__.removesuffix("_")] = make
    return make


def script(about: str, steps: Sequence[Json], exchanges: Sequence[Json]) -> dict[str, Json]:
    return {"about": about, "steps": [*steps], "exchanges": [*exchanges]}


def ask(method: str, path: str, *, query: Mapping[str, str] | None = None, **more: Json) -> dict[str, Json]:
    found: dict[str, Json] = {"method": method, "path": f"/v1{path}", **more}
    if query:
        found["query"] = dict(query)
    return found


def post(path: str, body: Json, method: str = "POST", **more: Json) -> dict[str, Json]:
    return ask(method, path, body=body, **more)


def told(request: dict[str, Json], value: Json) -> dict[str, Json]:
    return {"request": request, "answer": {"status": 200, "headers": VERSION, "body": plain(value)}}


def refused(request: dict[str, Json], error: errors.EverforgeError, status: int | None = None, **headers: str) -> dict[str, Json]:
    body = error_body(error, "r1")
    return {"request": request, "answer": {"status": status or error.http_status, "headers": {**VERSION, **headers}, "body": body}}


def lost(request: dict[str, Json]) -> dict[str, Json]:
    """Nothing is answered at all."""
    return {"request": request, "answer": {"cut": True}}


def lines(request: dict[str, Json], events: Sequence[Event | str | dict[str, Json]], then: str = "end") -> dict[str, Json]:
    said = [entry(one) if isinstance(one, Event) else one for one in events]
    return {"request": request, "answer": {"status": 200, "headers": VERSION, "lines": said, "then": then}}


def tape(after: int, number: int) -> dict[str, Json]:
    return ask("GET", "/machine/m/tape", query={"after": str(after), "follow": "true", "instruction": str(number)}, headers=NDJSON)


def executes(code: str, number: int = 0, **more: Json) -> dict[str, Json]:
    body = {"instruction": {"code": code, **more}}
    return told(post("/machine/m/exec", body, same=KEY), api.Accepted(instruction_seq=number, interrupted=False, machine="m"))


def accepted(position: int, code: str, number: int = 0, **more: Json) -> Accepted:
    return Accepted(position=Position(position), time=TIME, instruction=number, code=code, timeout_seconds=15.0, **more)


def printed(position: int, *texts: str, number: int | None = 0, seq: int = 0, **more: Json) -> Output:
    return Output(
        position=Position(position), time=TIME, instruction=number, stream=more.pop("stream", "stdout"), first_seq=seq, lines=[*texts], **more
    )


def ended(position: int, number: int = 0, end: Json = "value", **more: Json) -> Ended:
    return Ended(position=Position(position), time=TIME, instruction=number, end=end, runtime_ms=3, **more)


M: Json = {"do": "machine", "as": "m", "with": {"name": "m"}}


def run(code: str, gives: Json = None, **more: Json) -> dict[str, Json]:
    return {"do": "run", "on": "m", "with": {"code": code, **more}, "gives": gives}


def fails(step: dict[str, Json], code: str, message: str | None = None) -> dict[str, Json]:
    found = {name: value for name, value in step.items() if name != "gives"}
    return {**found, "fails": {"code": code, **({} if message is None else {"message": message})}}
