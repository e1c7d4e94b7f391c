"""Code in a machine: run it, read the rest of what it said, stop it, give it packages."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from everforge.client.results import failure_text

from ..answers import Answer
from ..calls import Call
from ..cutting import cut
from ..limits import (
    CODE_CHARACTERS_MAX,
    INSTALL_SECONDS,
    PACKAGE_CHARACTERS_MAX,
    PACKAGES_MAX,
    TIMEOUT_SECONDS,
    TIMEOUT_SECONDS_MAX,
    VALUE_CHARACTERS,
)
from ..running import Ran, run
from .base import Arguments, Data, MachineName, Tool, changes

NETWORK_WORDS = (
    "ConnectionError",
    "URLError",
    "ProxyError",
    "HTTPError",
    "gaierror",
    "ConnectError",
    "Could not find a version",
    "No matching distribution",
)
NETWORK_HINT = "If this needed the network: show_egress_refusals says what was refused, and how a person allows it."
HINTS = {
    "timed_out": "It took longer than timeout_seconds. Give it longer; with wait_seconds you need not wait for its end.",
    "interrupted": "It was interrupted.",
    "cancelled": "It did not come to its end, and may never have begun.",
    "lost": "What it did cannot be known: look before you repeat it.",
}
STOPPED = "It had begun, and was stopped before its end."


class RunPython(Arguments):
    code: Annotated[str, Field(min_length=1, max_length=CODE_CHARACTERS_MAX, description="Python code, as in a notebook cell.")]
    machine: MachineName = ""
    timeout_seconds: Annotated[float, Field(gt=0, le=TIMEOUT_SECONDS_MAX, description="The code is interrupted after that long.")] = TIMEOUT_SECONDS
    wait_seconds: Annotated[
        float,
        Field(gt=0, le=TIMEOUT_SECONDS_MAX, description="Answer after that long, though the code runs on; read_output then tells the rest."),
    ] = TIMEOUT_SECONDS_MAX


class RanPython(Data):
    machine: str = Field(description="Where it ran.")
    instruction: int = Field(description="Its number in that machine, for read_output and rollback_machine.")
    end: Literal["value", "error", "interrupted", "timed_out", "lost", "cancelled", "running", "unknown"] = Field(
        description="How it ended: value is good; unknown: the connection was lost."
    )
    value: str | None = Field(default=None, description="repr() of the last expression.")
    stdout: str = ""
    stderr: str = ""
    shown: list[str] = Field(default=[], description="Text of what was displayed. Pictures are image content of the answer.")
    pictures: int = Field(default=0, description="How many pictures the answer has.")
    error: str | None = None
    traceback: str | None = None
    runtime_ms: int | None = None


async def run_python(call: Call, given: RunPython) -> Answer:
    chosen = await call.machine(given.machine)
    ran = await run(call, chosen.machine, given.code, given.timeout_seconds, min(given.wait_seconds, TIMEOUT_SECONDS_MAX))
    return answer_of(ran, chosen.note)


def answer_of(ran: Ran, note: str | None) -> Answer:
    data = _data(ran)
    data.note = " ".join(part for part in (note, *_notes(ran)) if part) or None
    failed = data.end not in ("value", "running")
    return Answer(_text(data), data, ran.output.shown.pictures, is_error=failed)


def _data(ran: Ran) -> RanPython:
    result, output = ran.result, ran.output
    data = RanPython(
        machine=ran.machine,
        instruction=ran.instruction,
        end=result.end if result is not None else "unknown" if ran.lost else "running",
        stdout=output.stdout.text(_gap(ran, "stdout")),
        stderr=output.stderr.text(_gap(ran, "stderr")),
        shown=output.shown.texts,
        pictures=len(output.shown.pictures),
    )
    if result is not None:
        data.value = None if result.value is None else cut(result.value, VALUE_CHARACTERS, _gap(ran, "value"))
        data.error = None if result.error is None else cut(result.error, VALUE_CHARACTERS, _gap(ran, "traceback"))
        data.traceback = None if result.traceback is None else cut(result.traceback, VALUE_CHARACTERS, _gap(ran, "traceback"))
        data.runtime_ms = result.runtime_ms
    return data


def _gap(ran: Ran, stream: str) -> str:
    place = f'machine="{ran.machine}", instruction={ran.instruction}, stream="{stream}"'
    return f"[... {{count}} characters left out: read_output({place}, offset={{offset}}) reads them ...]"


def _notes(ran: Ran) -> list[str | None]:
    result = ran.result
    if result is None:
        return [ran.unended, ran.output.shown.note]
    failure = failure_text(result.end, result.error, result.traceback) if not result.ok else ""
    network = NETWORK_HINT if any(word in failure for word in NETWORK_WORDS) else None
    hint = STOPPED if result.end == "cancelled" and ran.output.begun else HINTS.get(result.end)
    return [result.note, hint, network, ran.output.shown.note]


def _text(data: RanPython) -> str:
    failure = "" if data.end in ("value", "running", "unknown") else failure_text(data.end, data.error, data.traceback) or data.end
    time = "" if data.runtime_ms is None else f", {data.runtime_ms} ms"
    parts = (
        data.stdout.rstrip("\n"),
        f"[stderr]\n{data.stderr.rstrip()}" if data.stderr.strip() else "",
        *data.shown,
        data.value or "",
        failure.rstrip("\n"),
        f"[{data.note}]" if data.note else "",
        f"[machine {data.machine}, instruction {data.instruction}{time}]",
    )
    return "\n".join(part for part in parts if part)


class InstallPackages(Arguments):
    packages: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=PACKAGE_CHARACTERS_MAX, pattern=r"^[A-Za-z0-9][^\n\r\x00]*$")]],
        Field(min_length=1, max_length=PACKAGES_MAX, description='As pip takes them: ["polars", "scipy==1.16.*", "requests[socks]"].'),
    ]
    machine: MachineName = ""


async def install_packages(call: Call, given: InstallPackages) -> Answer:
    chosen = await call.machine(given.machine)
    ran = await run(call, chosen.machine, _pip(given.packages), INSTALL_SECONDS)
    answer = answer_of(ran, chosen.note)
    if not answer.is_error and isinstance(answer.data, RanPython) and answer.data.value != "0":
        answer.is_error = True
        answer.text = f"pip could not install {', '.join(given.packages)}. {NETWORK_HINT}\n{answer.text}"
    return answer


def _pip(packages: list[str]) -> str:
    """One expression, so that no name of it stays in the machine. Its output comes line by line."""
    words = ["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--", *packages]
    return f"__import__('subprocess').run([__import__('sys').executable, *{words!r}]).returncode"


RUN = Tool(
    "run_python",
    "Run Python",
    """Run Python code in a live machine, and get its output, its value and its pictures.

The machine is a real Linux computer of its own, in a sandbox, that remembers: variables, imports, files, threads and open connections are there
in the next call, also days later. This conversation has one of its own, made at the first call; work there step by step instead of repeating
everything in each call. numpy, pandas and matplotlib are usually there; install_packages adds more. The network is closed but for the package
index, unless a person opens it.

Comes back: stdout and stderr, the value of the last expression (no print needed, as in a notebook), and figures as images: plt.show() is enough.
Tables come as text. Long output is cut in the middle, with the read_output call that reads the rest. An exception comes back with its traceback;
what was defined before it is kept.

Code that takes longer than timeout_seconds is interrupted. For long work raise timeout_seconds and set wait_seconds=30: you get what there is by
then, and read_output the rest later.

Examples: {"code": "import pandas as pd\\ndf = pd.read_csv('sales.csv')\\ndf.describe()"}; {"code": "import matplotlib.pyplot as
plt\\nplt.plot([1, 4, 9])\\nplt.show()"}; {"code": "train()", "timeout_seconds": 1800, "wait_seconds": 30}""",
    RunPython,
    RanPython,
    changes(destructive=True, open_world=True),
    run_python,
)
INSTALL = Tool(
    "install_packages",
    "Install packages",
    """Install Python packages into a machine with pip, and get pip's output. They stay for as long as the machine is there, and can be imported
at once.

Use it when an import fails with ModuleNotFoundError. Try the import first: many packages are there already.

Example: {"packages": ["polars", "duckdb"]}""",
    InstallPackages,
    RanPython,
    changes(idempotent=True, open_world=True),
    install_packages,
)
