"""Which machine belongs to which conversation. The memory of it is a tag on the machine, at the server; here is only what saves a question."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from dataclasses import dataclass

from everforge import AsyncEverforge, AsyncMachine
from everforge.wire.errors import MachineNotFound, NameTaken

from .limits import CONVERSATIONS_MAX

TAG = "mcp-conversation"
HASH_CHARACTERS = 24


def tag_of(key: str) -> str:
    """A key may name a folder or a session: neither is for everybody who can list machines."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_CHARACTERS]


@dataclass(frozen=True)
class Chosen:
    """The machine of a call, and what the model must be told about it."""

    machine: AsyncMachine
    note: str | None = None

    @property
    def name(self) -> str:
        return self.machine.name


class Conversation:
    """Its machine is found by its tag or made when it is first needed. `pinned` is a machine that was named at the start."""

    def __init__(self, key: str, pinned: str | None = None) -> None:
        self.tag = tag_of(key)
        self._pinned = pinned
        self._name: str | None = pinned
        self._seen = False  # it was there, at some time that we know of
        self._lock = asyncio.Lock()

    async def machine(self, client: AsyncEverforge) -> Chosen:
        """The one it has; else a new one, and a note that says so."""
        async with self._lock:
            found = await self._find(client)
            if found is not None:
                self._name, self._seen = found, True
                return Chosen(client.machine(found))
            gone = self._name if self._seen else None
            made = await self._make(client)
            self._name, self._seen = made.name, True
            return Chosen(made, _note(gone, made.name))

    async def existing(self, client: AsyncEverforge) -> AsyncMachine | None:
        """The one it has, for whoever only looks."""
        async with self._lock:
            found = await self._find(client)
            return None if found is None else client.machine(found)

    async def use(self, client: AsyncEverforge, name: str) -> None:
        """From now on that one; the one before loses the tag and is otherwise left alone."""
        async with self._lock:
            chosen = client.machine(name)
            tags = (await chosen.info()).tags
            async for other in client.machines(tags={TAG: self.tag}):
                if other.name != name:
                    await client.machine(other.name).update(tags={key: value for key, value in other.tags.items() if key != TAG})
            await chosen.update(tags={**tags, TAG: self.tag})
            self._pinned, self._name, self._seen = None, name, True

    async def _find(self, client: AsyncEverforge) -> str | None:
        """Asked each time: somebody else may have deleted it. The oldest, should two programs have made one at the same time."""
        if self._pinned is not None:
            try:
                return (await client.machine(self._pinned).info()).name
            except MachineNotFound:
                return None
        found: str | None = None
        async for listed in client.machines(tags={TAG: self.tag}):
            found = listed.name
        return found

    async def _make(self, client: AsyncEverforge) -> AsyncMachine:
        try:
            return await client.create(self._pinned, tags={TAG: self.tag})
        except NameTaken:
            if self._pinned is None:
                raise
            return client.machine(self._pinned)  # by another program, between the question and now


def _note(gone: str | None, made: str) -> str:
    if gone is None:
        return f"This conversation got a new machine, {made}: nothing is defined in it yet."
    return (
        f"The machine {gone} of this conversation was deleted: its variables and files are gone."
        f" A new one, {made}, took its place: define again what you need."
    )


class Conversations:
    """By account and key."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], Conversation] = OrderedDict()

    def of(self, account: str, key: str, pinned: str | None = None) -> Conversation:
        place = (account, key)
        if place not in self._known:
            self._known[place] = Conversation(key, pinned)
            if len(self._known) > CONVERSATIONS_MAX:
                self._known.popitem(last=False)
        self._known.move_to_end(place)
        return self._known[place]
