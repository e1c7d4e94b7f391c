"""One connection for many instructions."""

from __future__ import annotations

from collections.abc import Sequence

from everforge import __version__
from everforge.server.answers import error_body
from everforge.server.views import entry
from everforge.wire import errors
from everforge.wire.events import Event

from .words import VERSION, Json, M, accepted, ended, fails, printed, script, transcript


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
