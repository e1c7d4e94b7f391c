"""What a tool says, as the protocol has it: text for the model, the same as data, pictures; and every refusal as a sentence that it can act on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from mcp.types import CallToolResult, ContentBlock, ImageContent, TextContent
from pydantic import BaseModel, ValidationError

from everforge.wire.errors import EverforgeError

from .visible import visible, whole

ERRORS_MAX = 5  # of arguments, told at once
TOLD_CHARACTERS = 1000  # of what is wrong with them

_LIST_MACHINES = "list_machines shows which there are; without `machine` this conversation's own is used."
_LIST_SNAPSHOTS = "list_snapshots shows what it can go back to."
_LIST_FILES = "list_files shows what is there."
_PERSON = "You cannot mend this: tell the person you work for."
_ROOM = "delete_machine ends machines that nobody needs; ask the person you work for first."
# What a model can do about it, where the sentence of the error does not say it in the words of these tools.
REMEDIES = {
    "MachineNotFound": _LIST_MACHINES,
    "MachineBroken": f"rollback_machine brings it back to a snapshot ({_LIST_SNAPSHOTS[:-1]}), reset_machine begins it anew.",
    "SnapshotNotFound": _LIST_SNAPSHOTS,
    "PointNotKept": _LIST_SNAPSHOTS,
    "InstructionNotFound": "Every result of run_python has the number of its instruction.",
    "FileNotFound": _LIST_FILES,
    "NotAFile": _LIST_FILES,
    "NotAFolder": _LIST_FILES,
    "NameTaken": "Give another name, or none.",
    "NoCapacity": _ROOM,
    "QuotaExceeded": _ROOM,
    "QueueFull": "interrupt ends what runs and what waits.",
    "Unreachable": f"{_PERSON} `everforge serve` starts a server on this computer, `everforge login` names one elsewhere.",
    "ServerUnknown": f"{_PERSON} `everforge serve` starts a server on this computer, `everforge login` names one elsewhere.",
    "ConfigurationBad": _PERSON,
    "VersionMismatch": _PERSON,
    "Unauthenticated": f"{_PERSON} `everforge login` takes a new token.",
    "Forbidden": f"{_PERSON} Another token may be allowed to.",
    "SaveFailed": "rollback_machine and reset_machine bring it back.",
    "DiskFull": _ROOM,
}
RETRIES = {"now": "Trying again at once may help.", "later": "Trying again in a while may help.", "never": "Trying the same again will not help."}


@dataclass
class Answer:
    text: str
    data: BaseModel | None = None  # as its output schema says
    pictures: Sequence[ImageContent] = field(default_factory=tuple[ImageContent, ...])
    is_error: bool = False

    def result(self) -> CallToolResult:
        content: list[ContentBlock] = [TextContent(type="text", text=visible(self.text))] if self.text or not self.pictures else []
        structured = None if self.data is None else _whole(self.data.model_dump(mode="python"))
        return CallToolResult(content=[*content, *self.pictures], structured_content=structured, is_error=self.is_error)


def _whole(found: Any) -> Any:
    """Data has what the machine said as it is, but for what no message could hold."""
    if isinstance(found, dict):
        return {key: _whole(value) for key, value in cast("dict[str, Any]", found).items()}
    if isinstance(found, list):
        return [_whole(one) for one in cast("list[Any]", found)]
    return whole(found) if isinstance(found, str) else found


def refusal(error: EverforgeError) -> Answer:
    """Of what went wrong around the code."""
    after = f" Not before {error.retry_after_seconds:.0f} s have passed." if error.retry_after_seconds else ""
    parts = (f"{error.code}: {_sentence(error.message)}", REMEDIES.get(error.code, ""), RETRIES[error.retry] + after)
    return Answer(" ".join(part for part in parts if part), is_error=True)


def _sentence(message: str) -> str:
    return message if message.endswith((".", "!", "?")) else f"{message}."


def bad_arguments(tool: str, error: ValidationError) -> Answer:
    """A model that sees what is wrong with its arguments puts it right."""
    found = error.errors(include_url=False, include_context=False)
    told = [f"{'.'.join(str(part) for part in one['loc']) or 'arguments'}: {one['msg'].lower()}" for one in found[:ERRORS_MAX]]
    return Answer(f"InvalidInput: {tool} did nothing, its arguments are wrong: {'; '.join(told)[:TOLD_CHARACTERS]}.", is_error=True)
