"""One call of a tool: who asks, in which conversation, and what it may use."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from everforge import AsyncEverforge, AsyncMachine
from everforge.wire.errors import MachineNotFound

from .conversations import Chosen, Conversation
from .limits import OUTPUT_CHARACTERS
from .progress import Progress
from .reach import Reach


@dataclass(frozen=True)
class Settings:
    """Of the whole server, as it was started."""

    conversation: str | None = None  # its name, for all who come over standard input and output
    machine: str | None = None  # the one that conversations use
    share: Path | None = None  # the folder of this computer that files may come from and go to
    output_characters: int = OUTPUT_CHARACTERS


@dataclass
class Link:
    """The connection to the client. Closed is not cancelled: what runs then goes on, and can be read later."""

    closed: bool = False


@dataclass
class Call:
    client: AsyncEverforge
    conversation: Conversation
    settings: Settings = field(default_factory=Settings)
    progress: Progress = field(default_factory=Progress)
    link: Link = field(default_factory=Link)
    reach: Reach = field(default_factory=Reach)  # of the client

    async def machine(self, name: str) -> Chosen:
        """The one that was named, else the conversation's, which is made if need be."""
        return Chosen(self.client.machine(name)) if name else await self.conversation.machine(self.client)

    async def existing(self, name: str) -> AsyncMachine:
        """The same for whoever only looks: nothing is made."""
        if name:
            return self.client.machine(name)
        found = await self.conversation.existing(self.client)
        if found is None:
            raise MachineNotFound("this conversation has no machine yet: run_python makes one")
        return found
