"""What a tool is: a name, what a model must know of it, its arguments and answer as schemas, and a function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar, cast

from mcp import types
from pydantic import BaseModel, ConfigDict, Field

from ..answers import Answer
from ..calls import Call
from ..limits import NAME_CHARACTERS_MAX, PATH_CHARACTERS_MAX


class Arguments(BaseModel):
    """What is not known is refused: a model that misspells a name must hear of it."""

    model_config = ConfigDict(extra="forbid")


class Data(BaseModel):
    """What a tool answers, for programs. Everything that is not there yet is null."""

    note: str | None = Field(default=None, description="What you must know beyond the rest: a new machine, something left out.")


A = TypeVar("A", bound=Arguments)

MachineName = Annotated[
    str,
    Field(max_length=NAME_CHARACTERS_MAX, description="Name of a machine. Leave it out for the machine of this conversation."),
]
FilePath = Annotated[str, Field(max_length=PATH_CHARACTERS_MAX, description="Relative to the machine's home folder, or absolute.")]


@dataclass(frozen=True)
class Tool(Generic[A]):
    name: str
    title: str
    description: str
    arguments: type[A]
    data: type[BaseModel] | None
    hints: types.ToolAnnotations
    do: Callable[[Call, A], Awaitable[Answer]]

    def listed(self) -> types.Tool:
        return types.Tool(
            name=self.name,
            title=self.title,
            description=unwrapped(self.description),
            input_schema=schema(self.arguments),
            output_schema=None if self.data is None else schema(self.data),
            annotations=self.hints,
        )

    async def call(self, call: Call, arguments: dict[str, Any]) -> Answer:
        """ValidationError when the arguments are wrong."""
        return await self.do(call, self.arguments.model_validate(arguments))


def reads(*, open_world: bool = False) -> types.ToolAnnotations:
    """It changes nothing."""
    return types.ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=open_world)


def changes(*, destructive: bool = False, idempotent: bool = False, open_world: bool = False) -> types.ToolAnnotations:
    return types.ToolAnnotations(read_only_hint=False, destructive_hint=destructive, idempotent_hint=idempotent, open_world_hint=open_world)


def unwrapped(text: str) -> str:
    """A paragraph a line: where the source breaks lines means nothing."""
    return "\n\n".join(" ".join(paragraph.split("\n")) for paragraph in text.split("\n\n"))


def schema(model: type[BaseModel]) -> dict[str, Any]:
    """Without the titles that are only the names again: a model pays for each word."""
    found = cast("dict[str, Any]", _untitled(model.model_json_schema()))
    return {key: value for key, value in found.items() if key != "description"}  # which is what the class says to us


def _untitled(found: Any) -> Any:
    if isinstance(found, dict):
        return {
            key: {name: _untitled(below) for name, below in value.items()} if key in ("properties", "$defs") else _untitled(value)
            for key, value in cast("dict[str, Any]", found).items()
            if not (key == "title" and isinstance(value, str))
        }
    return [_untitled(one) for one in cast("list[Any]", found)] if isinstance(found, list) else found
