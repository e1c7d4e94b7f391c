"""What a server refuses, what one of another version does, and what answers where no server is."""

from __future__ import annotations

from everforge import __version__
from everforge.server.answers import plain
from everforge.wire import api, errors

from ..lists import MACHINE
from .words import VERSION, Json, M, ask, fails, post, refused, script, told, transcript


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
