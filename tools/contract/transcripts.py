"""What is said between a client and a server, in every case that an SDK must get right: made with the wire's own types and the server's own spelling of
them, so that a change of either changes these."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from everforge import __version__
from everforge.server.answers import error_body, plain
from everforge.server.views import entry
from everforge.wire import api, errors
from everforge.wire.audit import AuditEntry, AuditHead, Seen, seal
from everforge.wire.audit import plain as plain_seen
from everforge.wire.events import Accepted, Answered, Called, Displayed, Ended, Event, Moved, Output, Position

from .lists import ACCOUNT, MACHINE, SNAPSHOT, listed

Json = Any
VERSION = {"x-everforge-version": __version__}
KEY = {"idempotency-key": "key"}
NDJSON = {"accept": {"$has": "application/x-ndjson"}}
TIME = 1_900_000_000.0
_made: dict[str, Callable[[], dict[str, Json]]] = {}


def files() -> dict[str, str]:
    return {f"{name}.json": json.dumps(make(), indent=1) + "\n" for name, make in _made.items()}


def transcript(make: Callable[[], dict[str, Json]]) -> Callable[[], dict[str, Json]]:
    _made[make.__name__.removesuffix("_")] = make
    return make


def script(about: str, steps: Sequence[Json], exchanges: Sequence[Json]) -> dict[str, Json]:
    return {"about": about, "steps": [*steps], "exchanges": [*exchanges]}


# --- words that all of them use ---------------------------------------------------------------------------------------------------------------


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


# --- plain requests ---------------------------------------------------------------------------------------------------------------------------


@transcript
def whoami() -> dict[str, Json]:
    return script(
        "who asks",
        [{"do": "whoami", "gives": {"account": "ada"}}],
        [told(ask("GET", "/whoami", headers={"user-agent": {"$has": "everforge-"}}), api.Whoami(account="ada"))],
    )


@transcript
def pages_of_machines() -> dict[str, Json]:
    first = {"tag": ["team=red", "kind=a b&c"], "limit": "500"}
    return script(
        "a list that comes in two pages, by tags with letters that an address must quote",
        [{"do": "machines", "with": {"tags": {"team": "red", "kind": "a b&c"}}, "gives": ["second", "first"]}],
        [
            told(ask("GET", "/machine/list", query=first), api.MachineList(machines=[listed("second")], next="cursor")),
            told(ask("GET", "/machine/list", query={**first, "after": "cursor"}), api.MachineList(machines=[listed("first")], next=None)),
        ],
    )


@transcript
def create_with_everything() -> dict[str, Json]:
    given = {
        "name": "full", "tags": {"a": "b"}, "metadata": {"n": [1, 2]}, "memory_mb": 512, "cpus": 0.5, "disk_mb": 1000, "processes": 40, "image": "minimal",
        "env": {"A": "1"}, "egress": "list", "egress_allow": ["api.example.com"], "idle_seconds": 60.0, "expires_at": "2030-01-31T12:00:00Z",
        "history": "each", "durability": "idle", "from_snapshot": {"machine": "old", "snapshot": "s"},
    }  # fmt: skip
    return script(
        "every option of a new machine is on the wire as it was given",
        [{"do": "create", "as": "x", "with": given, "gives": {"name": "full"}}],
        [told(post("/machine/new", given, same=KEY), api.MachineCreated(machine_name="full"))],
    )


@transcript
def create_again_after_a_cut() -> dict[str, Json]:
    request = post("/machine/new", {"tags": {"a": "b"}}, same=KEY)
    return script(
        "a request that was cut off is asked again under the same key, and so are a busy and a stopping server",
        [{"do": "create", "as": "x", "with": {"tags": {"a": "b"}}, "gives": {"name": "m"}}],
        [
            lost(request),
            refused(request, errors.NoCapacity("there is no room for now"), **{"Retry-After": "0"}),
            refused(request, errors.Stopping("the server stops"), **{"Retry-After": "0"}),
            told(request, api.MachineCreated(machine_name="m")),
        ],
    )


@transcript
def not_asked_again() -> dict[str, Json]:
    url = "${url}"
    return script(
        "what is not safe to do twice is not done twice",
        [M, fails({"do": "interrupt", "on": "m"}, "Uncertain", f"the connection to {url} was cut: whether the request was carried out is not known")],
        [lost(post("/machine/m/interrupt", {}))],
    )


@transcript
def machine_and_its_changes() -> dict[str, Json]:
    m = "/machine/m"
    return script(
        "looked at, changed, sent to sleep, woken, reset, deleted",
        [
            M,
            {"do": "info", "on": "m", "gives": {"name": "m", "state": "ready", "position": 7, "tags": {"team": "red"}}},
            {"do": "update", "on": "m", "with": {"tags": {"a": "b"}, "idle_seconds": 5.0, "expires_at": "never"}, "gives": {"name": "m"}},
            {"do": "hibernate", "on": "m", "gives": {"name": "m"}},
            {"do": "wake", "on": "m", "gives": {"name": "m"}},
            {"do": "reset", "on": "m", "gives": {"undo": "p1"}},
            {"do": "reset", "on": "m", "with": {"discard": True}, "gives": {"undo": None}},
            {"do": "delete", "on": "m", "gives": None},
        ],
        [
            told(ask("GET", m), MACHINE),
            told(post(m, {"tags": {"a": "b"}, "idle_seconds": 5.0, "expires_at": "never"}, "PATCH"), MACHINE),
            told(post(f"{m}/hibernate", {}), MACHINE),
            told(post(f"{m}/wake", {}), MACHINE),
            told(post(f"{m}/reset", {}), api.WasReset(undo="p1")),
            told(post(f"{m}/reset", {"discard": True}), api.WasReset(undo=None)),
            told(ask("DELETE", m), api.Deleted(deleted=True)),
        ],
    )


@transcript
def delete_that_was_cut() -> dict[str, Json]:
    request = ask("DELETE", "/machine/m")
    return script(
        "whether it was deleted is found out by asking again: it is gone",
        [M, {"do": "delete", "on": "m", "gives": None}],
        [lost(request), refused(request, errors.MachineNotFound("there is no machine m"))],
    )


@transcript
def copies_and_points() -> dict[str, Json]:
    m = "/machine/m"
    return script(
        "forks, snapshots and going back",
        [
            M,
            {"do": "fork", "on": "m", "as": "f", "with": {"name": "copy"}, "gives": {"name": "copy"}},
            {"do": "fork", "on": "m", "gives": {"name": "c0-x"}},
            {"do": "forks", "on": "m", "with": {"count": 2}, "gives": ["c0-1", "c0-2"]},
            {"do": "snapshot", "on": "m", "with": {"name": "before"}, "gives": {"id": "p1", "name": "before", "instruction": 4}},
            {"do": "snapshots", "on": "m", "gives": [{"id": "p1"}]},
            {"do": "delete_snapshot", "on": "m", "with": {"snapshot": "a/b c"}, "gives": None},
            {"do": "rollback", "on": "m", "with": {"to": "before"}, "gives": {"snapshot": {"id": "p1"}, "undo": "p2"}},
            {"do": "rollback", "on": "m", "with": {"to": 4, "discard": True}, "gives": {"undo": None}},
            {"do": "rollback", "on": "m", "gives": {"undo": "p2"}},
        ],
        [
            told(post(f"{m}/fork", {"names": ["copy"]}, same={"idempotency-key": "one"}), api.Forked(machine_name="copy", machine_names=["copy"])),
            told(post(f"{m}/fork", {}, same={"idempotency-key": "two"}), api.Forked(machine_name="c0-x", machine_names=["c0-x"])),
            told(post(f"{m}/fork", {"count": 2}, same={"idempotency-key": "three"}), api.Forked(machine_name="c0-1", machine_names=["c0-1", "c0-2"])),
            told(post(f"{m}/snapshots", {"name": "before"}), SNAPSHOT),
            told(ask("GET", f"{m}/snapshots"), api.SnapshotList(snapshots=[SNAPSHOT])),
            told(ask("DELETE", f"{m}/snapshots/a/b c"), api.Deleted(deleted=True)),
            told(post(f"{m}/rollback", {"to": "before"}), api.RolledBack(snapshot=SNAPSHOT, undo="p2")),
            told(post(f"{m}/rollback", {"to": 4, "discard": True}), api.RolledBack(snapshot=SNAPSHOT, undo=None)),
            told(post(f"{m}/rollback", {}), api.RolledBack(snapshot=SNAPSHOT, undo="p2")),
        ],
    )


@transcript
def completion() -> dict[str, Json]:
    found = api.Completed(matches=["print", "property"], start=0, end=2, busy=False)
    return script(
        "what could stand at the cursor",
        [
            M,
            {
                "do": "complete",
                "on": "m",
                "with": {"code": "pr", "cursor": 2},
                "gives": {"matches": ["print", "property"], "start": 0, "end": 2, "busy": False},
            },
        ],
        [told(post("/machine/m/complete", {"code": "pr", "cursor": 2}), found)],
    )


# --- instructions -----------------------------------------------------------------------------------------------------------------------------


@transcript
def run_with_output_and_value() -> dict[str, Json]:
    code = "print('é\\n\\U0001f40d')"
    return script(
        "lines of both streams, a line that goes on, something shown, and the value in several formats",
        [
            M,
            run(
                code,
                {
                    "instruction": 3, "end": "value", "runtime_ms": 3, "value": "'done'", "data": {"text": "done", "html": "<b>done</b>"}, "error": None,
                    "stdout": "\u00e9\n\U0001f40d\nhalf and half\n", "stderr": "warned\n", "displays": [{"png": "aGk=", "text": "a picture"}], "truncated": False,
                    "note": "a new interpreter began", "retry": "never", "traceback": None,
                },
                timeout_seconds=5.0, env={"A": "1"},
            ),
        ],
        [
            executes(code, 3, timeout_seconds=5.0, env={"A": "1"}),
            lines(
                tape(-1, 3),
                [
                    " ",  # a sign of life
                    accepted(10, code, 3, key="k", env={"A": "1"}),
                    printed(11, "\u00e9", "\U0001f40d", number=3),
                    printed(13, "warned", number=3, seq=2, stream="stderr"),
                    printed(14, "half ", number=3, seq=3, partial=True),
                    " \n",
                    printed(15, "and half", number=3, seq=4),
                    Displayed(position=Position(16), time=TIME, instruction=3, data={"png": "aGk=", "text": "a picture"}),
                    ended(17, 3, value="'done'", data={"text": "done", "html": "<b>done</b>"}, note="a new interpreter began", displays=1),
                ],
            ),
        ],
    )  # fmt: skip


@transcript
def ends_that_are_no_value() -> dict[str, Json]:
    cases: list[tuple[str, dict[str, Json]]] = [
        ("error", {"error": "ValueError: no", "traceback": "Traceback ...\nValueError: no"}),
        ("timed_out", {"error": "Timed out after 1 s", "traceback": "KeyboardInterrupt"}),
        ("interrupted", {"error": "KeyboardInterrupt"}),
        ("lost", {"error": "the interpreter was killed", "note": "files survive"}),
        ("cancelled", {"error": "cancelled"}),
        ("error", {"error": "there is no room to wake it", "retry": "later"}),
    ]
    steps: list[Json] = [M]
    said: list[Json] = []
    for number, (end, fields) in enumerate(cases):
        steps.append(run(f"n{number}", {"end": end, "value": None, "retry": "never", **fields}))
        keyed = told(
            post("/machine/m/exec", {"instruction": {"code": f"n{number}"}}, same={"idempotency-key": f"key{number}"}),
            api.Accepted(instruction_seq=number, interrupted=False, machine="m"),
        )
        said += [keyed, lines(tape(-1, number), [ended(number, number, end, **fields)])]
    return script("the other ends of an instruction are results, and no errors of ours", steps, said)


@transcript
def resume_after_a_cut() -> dict[str, Json]:
    code = "for n in range(6): print(n)"
    return script(
        "a stream that is cut three times: no line is lost, none comes twice, also where an entry comes again in part or in whole",
        [M, run(code, {"stdout": "0\n1\n2\n3\n4\n5\n", "end": "value", "value": None})],
        [
            executes(code),
            lines(tape(-1, 0), [accepted(0, code), printed(1, "0", "1")], "cut"),
            lines(tape(2, 0), [printed(1, "0", "1", "2", "3"), '{"type":"output","posi'], "cut"),
            lost(tape(4, 0)),
            lines(tape(4, 0), [printed(1, "0", "1", "2", "3"), printed(5, "4", "5", seq=4)]),
            lines(tape(6, 0), [ended(7)]),
        ],
    )


@transcript
def stream_of_lines() -> dict[str, Json]:
    code = "print(1); print(2)"
    return script(
        "lines as they come; an end that is no value is an error behind the last of them",
        [
            M,
            {"do": "stream", "on": "m", "with": {"code": code}, "gives": {"lines": ["1", "2"]}},
            fails(
                {"do": "stream", "on": "m", "with": {"code": "1/0"}},
                "InstructionFailed",
                "instruction 1 ended error: ZeroDivisionError: division by zero",
            ),
        ],
        [
            executes(code),
            lines(tape(-1, 0), [accepted(0, code), printed(1, "1"), printed(2, "2", seq=1), ended(3)]),
            told(
                post("/machine/m/exec", {"instruction": {"code": "1/0"}}, same={"idempotency-key": "other"}),
                api.Accepted(instruction_seq=1, interrupted=False, machine="m"),
            ),
            lines(tape(-1, 1), [accepted(4, "1/0", 1), ended(5, 1, "error", error="ZeroDivisionError: division by zero")]),
        ],
    )


@transcript
def an_instruction_by_its_number() -> dict[str, Json]:
    only = ask("POST", "/machine/m/interrupt", body={"instruction": 5})
    record = api.Instruction(
        instruction_seq=5, code="x", timeout_seconds=15.0, state="ended", accepted_at="2030-01-31T12:00:00.000000Z", position=9,
        result=api.Result(runtime_ms=3, end="value", value="1"),
    )  # fmt: skip
    listing = ask("GET", "/machine/m/exec", query={"limit": "100"})
    return script(
        "given elsewhere and waited for here; interrupted alone; listed in pages",
        [
            M,
            {"do": "instruction", "on": "m", "as": "i", "with": {"number": 5}, "gives": {"number": 5}},
            {"do": "result", "on": "i", "gives": {"instruction": 5, "value": "1", "stdout": "a\n"}},
            {"do": "interrupt", "on": "i", "gives": {"interrupted": False}},
            {"do": "interrupt", "on": "m", "with": {"pending": True}, "gives": {"interrupted": True}},
            {"do": "instructions", "on": "m", "gives": [{"instruction_seq": 5, "code": "x", "state": "ended"}, {"instruction_seq": 6}]},
        ],
        [
            lines(tape(-1, 5), [accepted(9, "x", 5), printed(10, "a", number=5), ended(11, 5, value="1")]),
            told(only, api.Interrupted(interrupted=False)),
            told(post("/machine/m/interrupt", {"pending": True}), api.Interrupted(interrupted=True)),
            told(listing, api.InstructionList(instructions=[record], next=5)),
            told(
                ask("GET", "/machine/m/exec", query={"limit": "100", "after": "5"}),
                api.InstructionList(instructions=[api.Instruction(**{**plain(record), "instruction_seq": 6, "result": None})], next=None),
            ),
        ],
    )


@transcript
def functions_of_the_program() -> dict[str, Json]:
    code = "ask('x')"
    call = "/machine/m/exec/0/calls"
    return script(
        "calls of functions are answered, with what they return or raise; one that was answered elsewhere is no error",
        [M, run(code, {"value": "'ok'"}, functions={"ask": {"answer": [1, None, "é"]}, "fail": {"$raises": "no such thing"}})],
        [
            executes(code, 0, functions=["ask", "fail"]),
            lines(
                tape(-1, 0),
                [
                    accepted(0, code, functions=["ask", "fail"]),
                    Called(position=Position(1), time=TIME, instruction=0, call=0, function="ask", args=["x"], kwargs={"n": 1}),
                    Answered(position=Position(2), time=TIME, instruction=0, call=0),
                    Called(position=Position(3), time=TIME, instruction=0, call=1, function="fail"),
                    Answered(position=Position(4), time=TIME, instruction=0, call=1),
                    Called(position=Position(5), time=TIME, instruction=0, call=2, function="ask"),
                    Answered(position=Position(6), time=TIME, instruction=0, call=2),
                    Called(position=Position(7), time=TIME, instruction=0, call=3, function="somebody_elses"),
                    ended(8, value="'ok'"),
                ],
            ),
            told(post(f"{call}/0", {"value": {"answer": [1, None, "é"]}}), api.Answered(answered=True)),
            told(post(f"{call}/1", {"error": {"$has": "no such thing"}}), api.Answered(answered=True)),
            refused(post(f"{call}/2", {"value": {"answer": [1, None, "é"]}}), errors.WrongState("it is answered already")),
        ],
    )


@transcript
def a_machine_deleted_meanwhile() -> dict[str, Json]:
    code = "wait()"
    return script(
        "its last entries come, then the end",
        [M, fails(run(code), "MachineNotFound", "m was deleted before instruction 0 ended")],
        [
            executes(code),
            lines(tape(-1, 0), [accepted(0, code), printed(1, "a")]),
            refused(tape(1, 0), errors.MachineNotFound("there is no machine m")),
        ],
    )


@transcript
def entries_of_the_tape() -> dict[str, Json]:
    first = [accepted(0, "x"), printed(1, "a", "b"), Moved(position=Position(3), time=TIME, event="sleep_recorded", residence="asleep")]
    page = {"entries": [entry(one) for one in first] + [{"type": "from_the_future", "position": 4, "cursor": 4}], "position": 4, "more": True}
    last = {"entries": [entry(ended(5))], "position": 5, "more": False}
    kinds = [
        {"type": "accepted", "code": "x", "cursor": 0},
        {"type": "output", "lines": ["a", "b"], "cursor": 2},
        {"type": "moved"},
        {"type": "ended"},
    ]
    return script(
        "pages of it, with an entry of a kind that this client is too young for",
        [M, {"do": "tape", "on": "m", "with": {"after": -1}, "gives": kinds}],
        [told(ask("GET", "/machine/m/tape", query={"after": "-1"}), page), told(ask("GET", "/machine/m/tape", query={"after": "4"}), last)],
    )


# --- refusals ---------------------------------------------------------------------------------------------------------------------------------


@transcript
def refusals() -> dict[str, Json]:
    cases: list[errors.EverforgeError] = [
        errors.InvalidInput("memory_mb must be a whole number"), errors.Forbidden("this token may not do that"), errors.MachineNotFound("there is no machine m"),
        errors.NameTaken("there is a machine m already"), errors.PointNotKept("no point was kept there", nearest=["p1"]), errors.TooLarge("it is too large"),
        errors.DiskFull("the disk is full"), errors.MachineBroken("its memory is gone", points=["p1"]), errors.WakeFailed("it could not be woken"),
    ]  # fmt: skip
    steps: list[Json] = [M]
    said: list[Json] = []
    for error in cases:
        steps.append(fails({"do": "info", "on": "m"}, error.code, error.message))
        said.append(refused(ask("GET", "/machine/m"), error))
    return script("every refusal is an error with the server's own sentence", steps, said)


@transcript
def a_refusal_from_the_future() -> dict[str, Json]:
    body = {"code": "TeapotOnly", "message": "it is a teapot", "retry": "never", "id": "r", "details": {}, "more": 1}
    return script(
        "a code that this client is too young for stays as it is",
        [M, fails({"do": "info", "on": "m"}, "TeapotOnly", "it is a teapot")],
        [{"request": ask("GET", "/machine/m"), "answer": {"status": 418, "headers": VERSION, "body": body}}],
    )


@transcript
def a_token_that_is_none() -> dict[str, Json]:
    return script(
        "which of the ways it is bad is not told",
        [fails({"do": "whoami"}, "Unauthenticated", "the server at ${url} does not know this token: run `everforge login`, or give the right one")],
        [refused(ask("GET", "/whoami"), errors.Unauthenticated("no"))],
    )


@transcript
def servers_of_another_version() -> dict[str, Json]:
    older = refused(post("/machine/m/complete", {"code": "x"}), errors.RouteNotFound("there is nothing at that place"))
    older["answer"]["headers"] = {"x-everforge-version": "0.0.1"}
    complete = {"do": "complete", "on": "m", "with": {"code": "x"}}
    younger = {**plain(MACHINE), "something": {"new": 1}, "state": "dreaming"}
    lacking = {name: value for name, value in plain(MACHINE).items() if name not in ("name", "state")}
    same = refused(post("/machine/m/complete", {"code": "x"}), errors.RouteNotFound("there is nothing at that place"))
    return script(
        "what an older one does not know, what a younger one adds, what one leaves out",
        [
            M,
            fails(
                complete,
                "VersionMismatch",
                f"the server at ${{url}} (0.0.1) does not know this request of client {__version__}: update whichever of client and server is older",
            ),
            {"do": "info", "on": "m", "gives": {"state": "dreaming", "name": "m"}},
            fails({"do": "info", "on": "m"}, "ProtocolError", "the server's answer lacks name, state: it may be of another version"),
            fails(complete, "RouteNotFound"),
        ],
        [older, told(ask("GET", "/machine/m"), younger), told(ask("GET", "/machine/m"), lacking), same],
    )


@transcript
def somebody_else_answers() -> dict[str, Json]:
    def other(status: int, text: str) -> dict[str, Json]:
        return {"request": ask("GET", "/whoami"), "answer": {"status": status, "headers": {}, "text": text}}

    who: Json = {"do": "whoami"}
    foreign = "what answers at ${url} is not an Everforge server"
    return script(
        "a page where a server should be, a proxy whose server is gone, and an answer that is no JSON",
        [
            fails(who, "VersionMismatch", f"{foreign}: check the address"),
            fails(who, "VersionMismatch", f"{foreign} (HTTP 404): check the address"),
            fails(who, "ProtocolError", "the server's answer is not JSON"),
            fails(who, "ProtocolError", "the server's answer is not a JSON object"),
            {"do": "whoami", "gives": {"account": "ada"}},
        ],
        [
            other(200, "<html>hello</html>"),
            other(404, "not here"),
            {"request": ask("GET", "/whoami"), "answer": {"status": 200, "headers": VERSION, "text": "<html>"}},
            {"request": ask("GET", "/whoami"), "answer": {"status": 200, "headers": VERSION, "text": "[1]"}},
            other(502, "bad gateway"),
            other(503, "away"),
            told(ask("GET", "/whoami"), api.Whoami(account="ada")),
        ],
    )


# --- files ------------------------------------------------------------------------------------------------------------------------------------


def _file(name: str) -> api.File:
    return api.File(name=name, path=f"data/{name}", kind="file", size_bytes=3, modified_at="2030-01-31T12:00:00Z", mode=0o644, target=None)


@transcript
def files_of_a_machine() -> dict[str, Json]:
    path = "/machine/m/files/data/a b/%é?.txt"
    listing = {"path": "data", "limit": "1000"}
    return script(
        "written, read, listed in pages, looked for and deleted, under a name that must be quoted",
        [
            M,
            {"do": "file_write", "on": "m", "with": {"path": "data/a b/%é?.txt", "text": "zwölf\n"}, "gives": {"path": "data/a b/%é?.txt", "size_bytes": 7}},
            {"do": "file_read", "on": "m", "with": {"path": "data/a b/%é?.txt"}, "gives": {"text": "zwölf\n"}},
            {"do": "file_list", "on": "m", "with": {"path": "data"}, "gives": ["a", "b"]},
            {"do": "file_exists", "on": "m", "with": {"path": "gone"}, "gives": {"exists": False}},
            {"do": "file_delete", "on": "m", "with": {"path": "data", "recursive": True}, "gives": None},
            {"do": "file_delete", "on": "m", "with": {"path": "a"}, "gives": None},
            fails({"do": "file_delete", "on": "m", "with": {"path": "../a"}}, "InvalidInput", "'../a' is not deleted: it has . or .. in it; give the path without them"),
            fails({"do": "file_read", "on": "m", "with": {"path": "none"}}, "FileNotFound", "there is no file none"),
        ],
        [
            lost(ask("PUT", path, text="zwölf\n")),
            told(ask("PUT", path, text="zwölf\n"), api.FileWritten(path="data/a b/%é?.txt", size_bytes=7)),
            {"request": ask("GET", path), "answer": {"status": 200, "headers": VERSION, "text": "zwölf\n"}},
            told(ask("GET", "/machine/m/files", query=listing), api.FileList(path="data", files=[_file("a")], next="a")),
            told(ask("GET", "/machine/m/files", query={**listing, "after": "a"}), api.FileList(path="data", files=[_file("b")], next=None)),
            refused(ask("GET", "/machine/m/files/gone"), errors.FileNotFound("there is no file gone")),
            told(ask("DELETE", "/machine/m/files/data", query={"recursive": "true"}), api.Deleted(deleted=True)),
            told(ask("DELETE", "/machine/m/files/a"), api.Deleted(deleted=True)),
            refused(ask("GET", "/machine/m/files/none"), errors.FileNotFound("there is no file none")),
        ],
    )  # fmt: skip


# --- one connection for many instructions -----------------------------------------------------------------------------------------------------


def _connected(position: int) -> dict[str, Json]:
    return {"say": {"type": "connected", "machine_name": "m", "position": position, "version": __version__}}


def _hears_exec(code: str, key: str = "exec", **more: Json) -> dict[str, Json]:
    return {"hear": {"type": "exec", "instruction": {"code": code, **more}, "same": {"key": key}}}


def _replies(number: int) -> dict[str, Json]:
    return {"say": {"type": "reply", "request_id": "${request_id}", "instruction_seq": number, "interrupted": False}}


def _says(event: Event, **more: Json) -> dict[str, Json]:
    return {"say": {**entry(event), **more}}


def _socket(then: Sequence[Json], after: int | None = None) -> dict[str, Json]:
    wanted: dict[str, Json] = {"path": "/v1/machine/m/connect"}
    if after is not None:
        wanted["query"] = {"after": str(after)}
    return {"socket": wanted, "version": __version__, "then": [*then]}


OPEN: Json = {"do": "repl", "on": "m", "as": "r", "gives": None}
CLOSE: Json = {"do": "close", "on": "r", "gives": None}


@transcript
def repl() -> dict[str, Json]:
    return script(
        "one connection: an instruction of ours among those of others, and an entry from the future",
        [
            M,
            OPEN,
            {
                "do": "run",
                "on": "r",
                "with": {"code": "print(1)", "timeout_seconds": 2.0},
                "gives": {"instruction": 8, "stdout": "1\n", "value": "2"},
            },
            {"do": "position", "on": "r", "gives": {"position": 25}},
            {"do": "interrupt", "on": "r", "with": {"pending": True}, "gives": {"interrupted": False}},
            {"do": "ping", "on": "r", "gives": None},
            CLOSE,
        ],
        [
            _socket(
                [
                    _connected(20),
                    _hears_exec("print(1)", timeout_seconds=2.0),
                    _says(printed(21, "another's", number=7)),
                    _says(accepted(22, "print(1)", 8), key="${exec}"),
                    _replies(8),
                    {"say": {"type": "from_the_future", "position": 23, "cursor": 23}},
                    _says(printed(24, "1", number=8)),
                    _says(ended(25, 8, value="2")),
                    {"hear": {"type": "interrupt", "pending": True}},
                    {"say": {"type": "reply", "request_id": "${request_id}", "interrupted": False}},
                    {"hear": {"type": "ping"}},
                    {"say": {"type": "reply", "request_id": "${request_id}"}},
                ]
            )
        ],
    )


@transcript
def repl_after_a_cut() -> dict[str, Json]:
    code = "for n in range(4): print(n)"
    return script(
        "cut before the reply, then in the middle of the output: the same key again, and no line twice",
        [M, OPEN, {"do": "run", "on": "r", "with": {"code": code}, "gives": {"stdout": "0\n1\n2\n3\n", "end": "value"}}, CLOSE],
        [
            _socket([_connected(5), _hears_exec(code), {"cut": True}]),
            _socket([_connected(6), _says(accepted(6, code, 1), key="${exec}"), _hears_exec(code), _replies(1), _says(printed(7, "0", "1", number=1)), {"cut": True}], 5),
            _socket([_connected(9), _says(printed(7, "0", "1", "2", number=1)), _says(printed(10, "3", number=1, seq=3)), _says(ended(11, 1))], 8),
        ],
    )  # fmt: skip


@transcript
def repl_refused() -> dict[str, Json]:
    error = errors.MachineNotFound("there is no machine m")
    return script(
        "in the handshake",
        [M, fails(OPEN, "MachineNotFound", "there is no machine m")],
        [{"socket": {"path": "/v1/machine/m/connect"}, "refuse": {"status": 404, "headers": VERSION, "body": error_body(error, "r1")}}],
    )


@transcript
def repl_whose_machine_is_deleted() -> dict[str, Json]:
    return script(
        "while an instruction runs",
        [M, OPEN, fails({"do": "run", "on": "r", "with": {"code": "x"}}, "MachineNotFound", "m was deleted before instruction 1 ended"), CLOSE],
        [
            _socket(
                [
                    _connected(5),
                    _hears_exec("x"),
                    _says(accepted(6, "x", 1), key="${exec}"),
                    _replies(1),
                    {"close": [4404, "the machine was deleted"]},
                ]
            )
        ],
    )


@transcript
def repl_whose_token_is_revoked() -> dict[str, Json]:
    message = "the token was revoked by the server at ${url}: run `everforge login`, or give another one"
    return script(
        "while an instruction runs",
        [M, OPEN, fails({"do": "run", "on": "r", "with": {"code": "x"}}, "Unauthenticated", message), CLOSE],
        [_socket([_connected(5), _hears_exec("x"), _says(accepted(6, "x", 1), key="${exec}"), _replies(1), {"close": [4001, "revoked"]}])],
    )


@transcript
def repl_with_a_refused_instruction() -> dict[str, Json]:
    error = errors.QueueFull("too many instructions wait")
    return script(
        "the next one goes on over the same connection",
        [
            M,
            OPEN,
            fails({"do": "run", "on": "r", "with": {"code": "x"}}, "QueueFull", "too many instructions wait"),
            {"do": "run", "on": "r", "with": {"code": "y"}, "gives": {"value": "1"}},
            CLOSE,
        ],
        [
            _socket(
                [
                    _connected(5),
                    _hears_exec("x", "first"),
                    {"say": {"type": "error", "request_id": "${request_id}", "error": error_body(error, "r1")}},
                    _hears_exec("y", "second"),
                    _says(accepted(6, "y", 1), key="${second}"),
                    _replies(1),
                    _says(ended(7, 1, value="1")),
                ]
            )
        ],
    )


# --- the account ------------------------------------------------------------------------------------------------------------------------------


def call(group: str, method: str, gives: Json, on: str | None = None, **arguments: Json) -> dict[str, Json]:
    found: dict[str, Json] = {"do": "call", "with": {"group": group, "method": method, "arguments": arguments}, "gives": gives}
    return found if on is None else {**found, "on": on}


@transcript
def tokens_and_accounts() -> dict[str, Json]:
    token = api.Token(id="t1", name="n", scopes=["read"], tags={}, created_at="2030-01-01T00:00:00Z", last_used_at=None, expires_at=None)
    made = api.TokenCreated(**plain(token), token="t1.secret")
    quota = api.Quota(machines=5, awake=2, memory_mb=0, disk_mb=0, requests_per_second=1.5, egress_bytes_per_day=0)
    usage = api.Usage(machines=1, awake=1, asleep=0, broken=0, instructions=9, runtime_ms=5, disk_bytes=7, quota=quota)
    return script(
        "made, listed, taken away",
        [
            call("", "account", {"account": "ada", "owner": True}),
            call("", "usage", {"instructions": 9, "quota": {"requests_per_second": 1.5}}),
            call(
                "tokens",
                "create",
                {"token": "t1.secret", "scopes": ["read"]},
                name="n",
                scopes=["read"],
                expires_at="2031-01-01T00:00:00Z",
                tags={"a": "b"},
            ),
            call("tokens", "list", [{"id": "t1"}]),
            call("tokens", "revoke", None, id="t1"),
            call("tokens", "link", {"url": "http://x/login/1"}),
            call("accounts", "list", [{"account": "ada"}]),
            call("accounts", "create", {"account": "bob", "token": "b.c"}, name="bob", email="bob@example.org"),
            call("accounts", "quota", {"machines": 5}, name="bob", machines=5, requests_per_second=1.5),
            call("accounts", "invite", {"invitation": "i1"}, email="eve@example.org"),
            call("accounts", "delete", None, name="bob"),
        ],
        [
            told(ask("GET", "/account"), ACCOUNT),
            told(ask("GET", "/usage"), usage),
            told(post("/tokens", {"name": "n", "scopes": ["read"], "expires_at": "2031-01-01T00:00:00Z", "tags": {"a": "b"}}), made),
            told(ask("GET", "/tokens"), api.TokenList(tokens=[token])),
            told(ask("DELETE", "/tokens/t1"), api.Deleted(deleted=True)),
            told(post("/links", {}), api.LogInLink(url="http://x/login/1", expires_at="2030-01-01T00:00:00Z")),
            told(ask("GET", "/accounts"), api.AccountList(accounts=[ACCOUNT])),
            told(post("/accounts", {"account_name": "bob", "email": "bob@example.org"}), api.AccountCreated(account="bob", token="b.c")),
            told(post("/accounts/bob/quota", {"machines": 5, "requests_per_second": 1.5}, "PATCH"), quota),
            told(post("/invitations", {"email": "eve@example.org"}), api.Invitation(invitation="i1", expires_at="2030-01-01T00:00:00Z")),
            told(ask("DELETE", "/accounts/bob"), api.Deleted(deleted=True)),
        ],
    )


@transcript
def the_way_out() -> dict[str, Json]:
    policy = api.EgressPolicy(egress="list", egress_allow=["a.example.com"])
    attempt = api.EgressAttempt(
        number=3, time="2030-01-01T00:00:00Z", host="a.example.com", port=443, speech="tls", method="", path="", verdict="refused", why="no rule", allowed_by="",
        address="", sent_bytes=0, received_bytes=0, secrets=[], ended_at=None,
    )  # fmt: skip
    secret = api.Secret(name="KEY", placeholder="efsec", hosts=["a.example.com"], header=None, places=[], created_at="2030", changed_at="2030")
    gives = {"egress": "list", "egress_allow": ["a.example.com"]}
    e = "/machine/m/egress"
    return script(
        "policies of a machine and of the account, what was tried, and secrets",
        [
            M,
            call("machine.egress", "show", gives, "m"),
            call("machine.egress", "set", gives, "m", policy="list"),
            call("machine.egress", "allow", gives, "m", rules=["a.example.com", "b.example.com"]),
            call("machine.egress", "deny", gives, "m", rules=["b.example.com"]),
            call("machine.egress", "log", [{"number": 3, "verdict": "refused"}, {"number": 2}], "m"),
            call("egress", "show", gives),
            call("egress", "set", gives, policy="list", allow=["a.example.com"]),
            call("secrets", "set", {"name": "KEY"}, name="KEY", value="v", hosts=["a.example.com"], header="Authorization: Bearer {}", places=["body"]),
            call("secrets", "list", [{"placeholder": "efsec"}]),
            call("secrets", "delete", None, name="KEY"),
        ],
        [
            told(ask("GET", e), policy),
            told(post(e, {"egress": "list"}), policy),
            told(post(e, {"allow": ["a.example.com", "b.example.com"]}), policy),
            told(post(e, {"deny": ["b.example.com"]}), policy),
            told(ask("GET", f"{e}/log", query={"limit": "200"}), api.EgressLog(attempts=[attempt], next=3)),
            told(ask("GET", f"{e}/log", query={"limit": "200", "before": "3"}), api.EgressLog(attempts=[api.EgressAttempt(**{**plain(attempt), "number": 2})], next=None)),
            told(ask("GET", "/egress"), policy),
            told(post("/egress", {"egress": "list", "egress_allow": ["a.example.com"]}, "PUT"), policy),
            told(post("/secrets/KEY", {"value": "v", "hosts": ["a.example.com"], "header": "Authorization: Bearer {}", "places": ["body"]}, "PUT"), secret),
            told(ask("GET", "/secrets"), api.SecretList(secrets=[secret])),
            told(ask("DELETE", "/secrets/KEY"), api.Deleted(deleted=True)),
        ],
    )  # fmt: skip


@transcript
def events_to_be_told() -> dict[str, Json]:
    hook = api.Webhook(id="w1", url="https://example.org/hook", events=["machine.broken"], created_at="2030")
    delivery = api.Delivery(id="d1", webhook="w1", event="machine.broken", body="{}", created_at="2030", attempts=9, error="it refused")
    return script(
        "webhooks",
        [
            call("webhooks", "add", {"id": "w1", "secret": "whsec_x"}, url="https://example.org/hook", events=["machine.broken"]),
            call("webhooks", "list", [{"id": "w1"}]),
            call("webhooks", "test", None, id="w1"),
            call("webhooks", "dead", [{"id": "d1"}]),
            call("webhooks", "given_up", {"deliveries": [{"id": "d1"}], "let_go": 4}),
            call("webhooks", "retry", 1, id="d1"),
            call("webhooks", "delete", None, id="w1"),
        ],
        [
            told(
                post("/webhooks", {"url": "https://example.org/hook", "events": ["machine.broken"]}),
                api.WebhookCreated(**plain(hook), secret="whsec_x"),
            ),
            told(ask("GET", "/webhooks"), api.WebhookList(webhooks=[hook])),
            told(post("/webhooks/w1/test", {}), api.WebhookTested(delivered=True)),
            told(ask("GET", "/webhooks/dead"), api.DeliveryList(deliveries=[delivery])),
            told(ask("GET", "/webhooks/dead"), api.DeliveryList(deliveries=[delivery], let_go=4)),
            told(post("/webhooks/dead/retry", {"id": "d1"}), api.Retried(deliveries=1)),
            told(ask("DELETE", "/webhooks/w1"), api.Deleted(deleted=True)),
        ],
    )


def _log() -> list[AuditEntry]:
    head = AuditHead(number=0, hash="0" * 64)
    found: list[AuditEntry] = []
    for i, detail in enumerate(({"n": 1, "text": 'é\U0001f40d/\\"\u007f'}, {"nested": {"b": [1.5, 1e21, -0.0, True, None], "a": 1}}, {})):
        sealed = seal(Seen(time=f"2030-01-01T00:00:0{i}.000Z", action="machine.create", account="a1", machine="m", detail=detail), head)
        found.append(sealed)
        head = AuditHead(number=sealed.number, hash=sealed.hash)
    return found


@transcript
def the_audit_log() -> dict[str, Json]:
    log = _log()
    head = AuditHead(number=3, hash=log[-1].hash)
    one = {"after": "0", "limit": "1"}
    most = {"after": "0", "limit": "500"}

    def page(*entries: AuditEntry, next: int | None = None) -> api.AuditPage:
        return api.AuditPage(entries=[*entries], next=next, head=head)

    def asked(query: dict[str, str], answer: api.AuditPage) -> dict[str, Json]:
        found = told(ask("GET", "/audit", query=query), answer)
        found["answer"]["body"]["entries"] = [plain_seen(entry) for entry in answer.entries]
        return found

    return script(
        "read in pages, and checked here, hash by hash, with numbers and letters that are easily spelled otherwise",
        [
            call("audit", "entries", [{"number": 1}, {"number": 2}, {"number": 3}], machine="m", action="machine"),
            call("audit", "head", {"number": 3, "hash": head.hash}),
            call("audit", "verify", {"count": 3, "head": {"number": 3, "hash": head.hash}}),
        ],
        [
            asked({**most, "machine": "m", "action": "machine"}, page(log[0], log[1], next=2)),
            asked({**most, "after": "2", "machine": "m", "action": "machine"}, page(log[2])),
            asked({**one, "last": "true"}, page(log[2])),
            asked(one, page(log[0], next=1)),
            asked({**one, "last": "true"}, page(log[2])),
            asked(most, page(*log)),
        ],
    )
