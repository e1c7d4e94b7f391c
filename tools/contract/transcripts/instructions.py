"""Instructions: what they print, how they end, and what happens when the connection does not last as long."""

from __future__ import annotations

from everforge.server.answers import plain
from everforge.server.views import entry
from everforge.wire import api, errors
from everforge.wire.events import Answered, Called, Displayed, Moved, Position

from .words import TIME, Json, M, accepted, ask, ended, executes, fails, lines, lost, post, printed, refused, run, script, tape, told, transcript


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
