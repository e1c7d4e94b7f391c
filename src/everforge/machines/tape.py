"""Readers of tapes. A reader is a cursor, not a queue: a slow one costs nothing, and connecting again is the same as connecting.

`TapeReaders` outlives keepers: a reader may follow a machine through sleep, wake and a change of keeper. Entries reach it only after the store
has them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from everforge.store.base import Store
from everforge.store.tape import read_bytes
from everforge.wire.events import Answered, Called, Displayed, Ended, Event, Output, Position, encode_body
from everforge.wire.ids import MachineId

READ_EVENTS = 256  # rows taken from the store at once
RECENT_BYTES = 256 * 1024  # rough bound of what is kept in memory for the live readers of one machine


Check = Callable[[], Awaitable[None]]


class _Live:
    """What live readers of one machine share: the newest entries, and who waits for more."""

    def __init__(self, recent_max: int) -> None:
        self.readers = 0
        self.recent: deque[Event] = deque(maxlen=recent_max)
        self.waiting: list[asyncio.Future[None]] = []
        self.ended = False
        self._waking: asyncio.Handle | None = None
        self._bytes = 0

    def add(self, events: Sequence[Event]) -> None:
        if self.recent and events[0].position != self.recent[-1].position + self.recent[-1].width:
            self.recent.clear()  # something is missing in between: readers ask the store
            self._bytes = 0
        for event in events:
            if len(self.recent) == self.recent.maxlen:
                self._drop_oldest()
            self.recent.append(event)
            self._bytes += _rough_bytes(event)
        while self._bytes > RECENT_BYTES and len(self.recent) > 1:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        self._bytes -= _rough_bytes(self.recent.popleft())

    def after(self, position: Position) -> list[Event] | None:
        """Entries after `position`, or None when memory does not reach back that far."""
        if not self.recent or self.recent[0].position > position + 1:
            return None
        found: list[Event] = []
        for event in reversed(self.recent):  # whoever reads live is close to the end
            if event.position + event.width - 1 <= position:
                break
            found.append(event)
        found.reverse()
        if found:
            found[0] = _cut(found[0], position)
        return found

    def wake_soon(self) -> None:
        """Behind whoever goes on with the machine itself now that the store has it: a reader's next entry depends on that."""
        if self._waking is None and self.waiting:
            self._waking = asyncio.get_running_loop().call_soon(self.wake_readers)

    def wake_readers(self) -> None:
        self._waking = None
        waiting, self.waiting = self.waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


class TapeReaders:
    def __init__(self, store: Store, recent_events: int) -> None:
        self._store = store
        self._recent_events = recent_events
        self._live: dict[MachineId, _Live] = {}

    def publish(self, machine: MachineId, events: Sequence[Event]) -> None:
        """Called after the store has them."""
        if events and (live := self._live.get(machine)):
            live.add(events)
            live.wake_soon()

    def end(self, machine: MachineId) -> None:
        """The machine is deleted: its readers get what there is, then the end."""
        if live := self._live.get(machine):
            live.ended = True
            live.wake_readers()

    def stir(self, machine: MachineId) -> None:
        """Something else has changed: its readers check again whether they may read on."""
        if live := self._live.get(machine):
            live.wake_readers()

    async def read(self, machine: MachineId, after: Position, *, follow: bool, check: Check | None = None) -> AsyncGenerator[Event]:
        """Every entry after `after`, in order, once; with `follow` for as long as the machine lives, or until `check` raises something."""
        live = self._live.setdefault(machine, _Live(self._recent_events))
        live.readers += 1
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            while True:
                if waiter.done():
                    waiter = asyncio.get_running_loop().create_future()
                if waiter not in live.waiting:
                    live.waiting.append(waiter)  # before looking, so that nothing slips between the look and the wait
                batch = live.after(after)
                if batch is None:
                    batch = await self._store.events(machine, after, READ_EVENTS)
                if check is not None:
                    await check()  # after the look: what was written since the reader may read no longer is not told
                for event in batch:
                    after = Position(event.position + event.width - 1)
                    yield event
                if not batch:
                    if not follow or live.ended:
                        return
                    await waiter
        finally:
            if waiter in live.waiting:
                live.waiting.remove(waiter)
            live.readers -= 1
            if not live.readers:
                self._live.pop(machine, None)


def _cut(event: Event, position: Position) -> Event:
    return event.after(position) if isinstance(event, Output) else event


def _rough_bytes(event: Event) -> int:
    match event:
        case Output():
            return read_bytes(event, 64 + sum(map(len, event.lines)))
        case Displayed():
            return 512 + _data_bytes(event.data)
        case Ended():
            return 512 + len(event.value or "") + len(event.traceback or "") + _data_bytes(event.data or {})
        case Called() | Answered():
            return 512 + 8 * len(encode_body(event))
        case _:
            return 512


def _data_bytes(data: Mapping[str, Any]) -> int:
    """JSON that was read is many times its size, and counting it would take as long as reading it: so it counts as all that may be kept."""
    return sum(len(value) if isinstance(value, str) else RECENT_BYTES for value in data.values())
