"""ForeverVM's two tools, by name, arguments and answers, for whoever is used to them."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import ConfigDict, Field

from everforge.wire.errors import EverforgeError

from ..answers import Answer, refusal
from ..calls import Call
from ..cutting import cut
from ..limits import CODE_CHARACTERS_MAX, NAME_CHARACTERS_MAX, TIMEOUT_SECONDS, VALUE_CHARACTERS
from ..pictures import GAP
from ..running import Ran, run
from .base import Arguments, Tool, changes

NO_VALUE = "The code did not return a value"


class Lenient(Arguments):
    """What is not known is passed over, as ForeverVM's own tools do it."""

    model_config = ConfigDict(extra="ignore")


class CreateRepl(Lenient):
    """None at all."""


async def create_repl(call: Call, given: CreateRepl) -> Answer:
    return Answer((await call.client.create()).name)


class RunInRepl(Lenient):
    pythonCode: Annotated[str, Field(max_length=CODE_CHARACTERS_MAX, description="Python code to run in the REPL.")]
    replId: Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS_MAX, description="Which REPL, as create-python-repl answered.")]


async def run_in_repl(call: Call, given: RunInRepl) -> Answer:
    try:
        ran = await run(call, call.client.machine(given.replId), given.pythonCode, TIMEOUT_SECONDS)
    except EverforgeError as e:
        failed = {"error": f"Failed to execute Python code: {refusal(e).text}", "output": "", "result": "", "replId": given.replId}
        return Answer(json.dumps(failed), is_error=True)
    said, pictures = _said(ran), ran.output.shown.pictures[-1:]
    if "error" in said:
        return Answer(json.dumps({**said, **({"image": pictures[0].data} if pictures else {})}), is_error=True)
    if pictures:
        return Answer("", pictures=pictures)
    return Answer(json.dumps(said))


def _said(ran: Ran) -> dict[str, str]:
    result = ran.result
    said = {"output": ran.output.both.text(GAP).removesuffix("\n"), "result": "", "replId": ran.machine}
    if result is not None and result.ok:
        return {**said, "result": NO_VALUE if result.value is None else cut(result.value, VALUE_CHARACTERS, GAP)}
    why = ran.unended if result is None else result.error or result.end
    return {**said, "error": f"Error: {cut(why, VALUE_CHARACTERS, GAP)}"}


CREATE = Tool(
    "create-python-repl",
    "Create a Python REPL",
    """Create a Python REPL and get its id, to give to run-python-in-repl. What is defined in it stays from run to run.

This is here for those who know ForeverVM; run_python does the same with less: no id is needed, and pictures come along with text.""",
    CreateRepl,
    None,
    changes(),
    create_repl,
)
RUN = Tool(
    "run-python-in-repl",
    "Run Python in a REPL",
    """Run Python code in a REPL of create-python-repl. Comes back: JSON with output, result, replId, and error if there is one; or a picture, if
one was shown.

This is here for those who know ForeverVM; run_python does more.""",
    RunInRepl,
    None,
    changes(destructive=True, open_world=True),
    run_in_repl,
)
