"""What an instruction wrote and how it ended, gathered from entries of the tape. No I/O."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from everforge.wire.errors import InstructionFailed
from everforge.wire.events import EndKind
from everforge.wire.sentences import say

OUTPUT_CHARACTERS_MAX = 64 * 1024 * 1024  # that a result keeps of each stream: a program that prints for days must not fill its client's memory

# The short names of the wire and what notebooks call them.
MIME_TYPES = {
    "text": "text/plain", "html": "text/html", "markdown": "text/markdown", "latex": "text/latex", "json": "application/json",
    "png": "image/png", "jpeg": "image/jpeg", "svg": "image/svg+xml", "javascript": "application/javascript",
}  # fmt: skip
Bundle = Mapping[str, Any]


class Line(str):
    """A line of output: a string, that knows which stream it came from. `end` is the newline, or nothing while the line may go on."""

    stream: Literal["stdout", "stderr"]
    partial: bool
    instruction: int | None
    position: int

    __slots__ = ("instruction", "partial", "position", "stream")

    def __new__(cls, text: str, *, stream: str = "stdout", partial: bool = False, instruction: int | None = None, position: int = -1) -> Line:
        line = super().__new__(cls, text)
        line.stream = "stderr" if stream == "stderr" else "stdout"
        line.partial, line.instruction, line.position = partial, instruction, position
        return line

    @property
    def end(self) -> str:
        return "" if self.partial else "\n"


@dataclass(frozen=True, slots=True)
class Display:
    """Something shown: a figure, a table. `data` has the same thing in several formats, by short name or MIME type."""

    data: Bundle
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def png(self) -> bytes | None:
        found = self.data.get("png", self.data.get("image/png"))
        try:
            return base64.b64decode(found) if isinstance(found, str) else None
        except ValueError:
            return None

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return mime_bundle(self.data)


def mime_bundle(data: Bundle | None) -> dict[str, Any]:
    return {MIME_TYPES.get(kind, kind): content for kind, content in (data or {}).items() if content is not None}


@dataclass(frozen=True, slots=True)
class Result:
    """The one end of an instruction, and what it wrote on the way. The code's own exception is `error`, not raised here."""

    instruction: int
    end: EndKind
    runtime_ms: int
    value: str | None = None  # repr() of the last expression
    data: Bundle | None = None  # the same in other formats
    error: str | None = None  # one line: type and message
    traceback: str | None = None
    note: str | None = None  # what survived, what was dropped
    retry: Literal["never", "later", "now"] = "never"
    displays: Sequence[Display] = ()
    stdout: str = ""
    stderr: str = ""
    truncated: bool = False  # it wrote more than a result keeps

    @property
    def ok(self) -> bool:
        return self.end == "value"

    @property
    def text(self) -> str:
        """What a terminal would show: the output, then the value or the traceback."""
        last = (self.value or "") if self.ok else (failure_text(self.end, self.error, self.traceback) or self.end)
        return "\n".join(part for part in (self.stdout.rstrip("\n"), self.stderr.rstrip("\n"), last.rstrip("\n")) if part)

    def raise_for_error(self) -> Result:
        """Itself when it is a value; else InstructionFailed."""
        if self.ok:
            return self
        why = self.error or self.note or "no more is known"
        raise InstructionFailed(say("ended_badly", number=self.instruction, end=self.end, why=why), result=self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """For notebooks: the value in its richest form, else the last thing shown."""
        if not self.ok:
            return {"text/plain": self.text}
        bundle = mime_bundle(self.data) or (mime_bundle(self.displays[-1].data) if self.displays and self.value is None else {})
        bundle.setdefault("text/plain", self.text)
        return bundle


@dataclass(frozen=True, slots=True)
class Call:
    """Code in the machine has called a function of this program and waits for its answer."""

    number: int
    function: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]


class _Text:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.room = OUTPUT_CHARACTERS_MAX
        self.truncated = False

    def add(self, line: Line) -> None:
        if len(line) >= self.room:
            self.truncated = True
            self.room = 0  # what follows is not to look as if it came right after
            return
        self.room -= len(line) + 1
        self.parts += (str(line), line.end)


class Gathering:
    """Follows one instruction through the tape: gives what happens, and has the result at its end."""

    def __init__(self, instruction: int) -> None:
        self.instruction = instruction
        self.result: Result | None = None
        self._texts = {"stdout": _Text(), "stderr": _Text()}
        self._displays: list[Display] = []

    def take(self, entry: Mapping[str, Any]) -> Iterator[Line | Display | Call]:
        if entry.get("instruction") != self.instruction or self.result is not None:
            return
        kind = entry["type"]
        if kind == "output":
            for line in lines_of(entry):
                self._texts[line.stream].add(line)
                yield line
        elif kind == "displayed":
            display = Display(entry["data"], entry.get("metadata") or {})
            self._displays.append(display)
            yield display
        elif kind == "called":
            yield Call(entry["call"], entry["function"], entry.get("args") or [], entry.get("kwargs") or {})
        elif kind == "ended":
            self.result = self._end(entry)

    def _end(self, entry: Mapping[str, Any]) -> Result:
        names = ("end", "runtime_ms", "value", "data", "error", "traceback", "note", "retry")
        out, err = self._texts["stdout"], self._texts["stderr"]
        return Result(
            instruction=self.instruction,
            **{name: entry[name] for name in names if name in entry},
            displays=tuple(self._displays),
            stdout="".join(out.parts),
            stderr="".join(err.parts),
            truncated=out.truncated or err.truncated,
        )


def failure_text(end: str, error: str | None, traceback: str | None) -> str:
    """Of an end that is no value: the traceback, and behind it what a traceback cannot know: that the time was over. Empty when nothing is known."""
    shown = (traceback, error) if end == "timed_out" else (traceback or error,)
    return "\n".join(part.rstrip("\n") for part in shown if part)


def lines_of(entry: Mapping[str, Any]) -> Iterator[Line]:
    """Of an output. Only its last line can be partial."""
    lines = cast(Sequence[str], entry["lines"])
    for i, text in enumerate(lines):
        partial = bool(entry.get("partial")) and i == len(lines) - 1
        yield Line(text, stream=entry["stream"], partial=partial, instruction=entry.get("instruction"), position=entry["position"] + i)


def behind(entry: dict[str, Any], cursor: int) -> dict[str, Any] | None:
    """What of an entry lies behind a cursor: all, a part of its lines, or None."""
    if entry["cursor"] <= cursor:
        return None
    skip = cursor - entry["position"] + 1
    if skip <= 0 or entry["type"] != "output":
        return entry
    return {**entry, "position": cursor + 1, "seq": entry.get("seq", 0) + skip, "lines": entry["lines"][skip:]}
