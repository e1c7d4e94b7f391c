"""Several clients at once, and a server that may be killed under them. Nothing is predicted: the tape is the model.

What a machine's memory must hold follows from its tape and from where on it each snapshot was taken; and everything that a client was told must be on it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from everforge.machines.lifecycle import Residence
from everforge.machines.requests import NewMachine
from everforge.store.base import Change, KeyRecord, MachineQuery, MachineRecord, PointRecord
from everforge.store.memory import MemoryStore
from everforge.store.quotas import UNLIMITED, Quota
from everforge.wire.errors import EverforgeError
from everforge.wire.events import Accepted, Ended, Event, Lost, Moved, Position
from everforge.wire.ids import MachineId, SnapshotId

from .house import House, Killed

AT_REST = frozenset({Residence.AWAKE, Residence.ASLEEP, Residence.BROKEN})
MACHINES_MAX = 4  # more would only take longer to look at
LOOK = "globals().get('seen', [])"

DOINGS = ["append", "append", "append", "append_now", "hang", "die", "interrupt", "hibernate", "wake", "snapshot", "roll_back"]
DOINGS += ["reset", "fork", "keep_each", "keep_idle", "keep_idle", "delete", "follow"]


class PointedStore(MemoryStore):
    """Remembers where on a tape every snapshot was taken, also those that are gone."""

    def __init__(self) -> None:
        super().__init__()
        self.taken_at: dict[SnapshotId, Position] = {}

    async def create(
        self,
        record: MachineRecord,
        events: Sequence[Event] = (),
        points: Sequence[PointRecord] = (),
        key: KeyRecord | None = None,
        quota: Quota = UNLIMITED,
    ) -> Sequence[Event]:
        placed = await super().create(record, events, points, key, quota)
        self._note(record.id)
        return placed

    async def commit(self, change: Change) -> Sequence[Event]:
        placed = await super().commit(change)
        if change.add_points:
            self._note(change.machine)
        return placed

    def _note(self, machine: MachineId) -> None:
        for point in self._machines[machine].points.values():
            self.taken_at.setdefault(point.snapshot, point.position)


@dataclass
class Told:
    """What clients were told of one machine."""

    id: MachineId
    accepted: set[int] = field(default_factory=set[int])
    ends: dict[int, Ended] = field(default_factory=dict[int, Ended])
    snapshots: set[SnapshotId] = field(default_factory=set[SnapshotId])
    to_be_deleted: bool = False
    deleted: bool = False


def replay(events: Sequence[Event], taken_at: dict[SnapshotId, Position]) -> list[int]:
    """What `seen` holds after this tape. Every value on the way is checked, too."""
    seen: list[int] = []
    states: list[tuple[Position, list[int]]] = []
    codes: dict[int, str] = {}

    def at(snapshot: str) -> list[int]:
        upto = taken_at[SnapshotId(snapshot)]
        return next((state for position, state in reversed(states) if position <= upto), [])

    for event in events:
        if isinstance(event, Accepted):
            codes[event.instruction] = event.code
        elif isinstance(event, Ended):
            if "InterpreterDied" in (event.error or ""):
                seen = []
            elif event.end == "value" and "# append " in (code := codes[event.instruction]):
                seen = [*seen, int(code.rpartition(" ")[2])]
                assert event.value == repr(seen), (event, seen)
        elif isinstance(event, Moved) and event.event in ("rollback_started", "reset_started"):
            seen = at(event.detail["to"])
        elif isinstance(event, Lost):
            assert event.snapshot is not None
            seen = at(event.snapshot)
        states.append((Position(event.position + event.width - 1), seen))
    return seen


class Crowd(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.told: dict[str, Told] = {}
        self.counter = 0

    def do(self, work: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(work, 60))

    @initialize()
    def begin(self) -> None:
        self.do(self._begin())

    async def _begin(self) -> None:
        self.store = PointedStore()
        self.house = House(store=self.store)
        await self.house.start()
        for _ in range(2):
            await self._create(self._another_name())

    def _another_name(self) -> str:
        self.counter += 1
        return f"m{self.counter}"

    # --- what one client does ----------------------------------------------------------------------------------------------------------------

    async def _create(self, name: str) -> None:
        self.told[name] = Told((await self.house.machines.create(NewMachine(name=name))).record.id)

    async def _exec(self, name: str, code: str, **how: Any) -> None:
        number, _ = await self.house.machines.exec(name, code, **how)
        self.told[name].accepted.add(number)
        self.told[name].ends[number] = await self.house.machines.result(name, number)

    async def append(self, name: str) -> None:
        self.counter += 1
        await self._exec(name, f"seen = [*{LOOK}, {self.counter}]; print('a line')\nseen  # append {self.counter}")

    async def append_now(self, name: str) -> None:
        self.counter += 1
        await self._exec(name, f"seen = [*{LOOK}, {self.counter}]\nseen  # append {self.counter}", interrupt=True)

    async def hang(self, name: str) -> None:
        await self._exec(name, "hang()", timeout_seconds=0.02)

    async def die(self, name: str) -> None:
        await self._exec(name, "die()")

    async def interrupt(self, name: str) -> None:
        await self.house.machines.interrupt(name, pending=True)

    async def hibernate(self, name: str) -> None:
        await self.house.machines.hibernate(name)

    async def wake(self, name: str) -> None:
        await self.house.machines.wake(name)

    async def snapshot(self, name: str) -> None:
        self.counter += 1
        self.told[name].snapshots.add((await self.house.machines.snapshot(name, f"named {self.counter}")).snapshot)

    async def roll_back(self, name: str) -> None:
        points = await self.house.machines.points(name)
        self.counter += 1
        done = await self.house.machines.rollback(name, snapshot=points[self.counter % len(points)].snapshot)
        if done.undo is not None:
            self.told[name].snapshots.add(done.undo)

    async def reset(self, name: str) -> None:
        if (undo := await self.house.machines.reset(name)) is not None:
            self.told[name].snapshots.add(undo)

    async def fork(self, name: str) -> None:
        fork = self._another_name()
        (view,) = await self.house.machines.fork(name, names=[fork])
        self.told[fork] = Told(view.record.id)

    async def keep_each(self, name: str) -> None:
        await self.house.machines.update(name, durability="each", history="each")

    async def keep_idle(self, name: str) -> None:
        await self.house.machines.update(name, durability="idle", history="idle")

    async def delete(self, name: str) -> None:
        self.told[name].to_be_deleted = True
        await self.house.machines.delete(name)
        self.told[name].deleted = True

    async def follow(self, name: str) -> None:
        """Reads along for a while."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                last = -1
                async for event in self.house.machines.read(name, follow=True):
                    assert event.position > last
                    last = event.position + event.width - 1

    # --- several at once ---------------------------------------------------------------------------------------------------------------------

    def _clients(self, doings: list[tuple[str, int]]) -> list[asyncio.Task[None]]:
        """Most of them meet at one machine."""
        names = [name for name, told in self.told.items() if not told.to_be_deleted]
        acts: list[tuple[Callable[[str], Awaitable[None]], str]] = [(getattr(self, doing), names[which % len(names)]) for doing, which in doings]
        return [asyncio.ensure_future(act(name)) for act, name in acts]  # pyright: ignore[reportArgumentType]

    @rule(
        doings=st.lists(st.tuples(st.sampled_from(DOINGS), st.sampled_from([0, 0, 0, 1, 2])), min_size=2, max_size=4),
        turns=st.one_of(st.none(), st.none(), st.integers(0, 60)),
        lost=st.booleans(),
    )
    def meet(self, doings: list[tuple[str, int]], turns: int | None, lost: bool) -> None:
        """All at once; with `turns` the server is killed under them after so many of the loop, and with `lost` everything that runs goes with it."""
        self.do(self._meet(doings) if turns is None else self._meet_and_die(doings, turns, lost))

    async def _meet(self, doings: list[tuple[str, int]]) -> None:
        await _outcomes(self._clients(doings), EverforgeError)

    async def _meet_and_die(self, doings: list[tuple[str, int]], turns: int, lost: bool) -> None:
        clients = self._clients(doings)
        for _ in range(turns):
            await asyncio.sleep(0)
        await self.house.kill()
        for client in clients:
            client.cancel()
        await _outcomes(clients, EverforgeError, Killed, asyncio.CancelledError)
        if lost:
            self.house.host.lose_everything()
        await self.house.start()

    # --- what holds when all is quiet ----------------------------------------------------------------------------------------------------------

    @invariant()
    def the_tape_the_memory_and_what_was_told_agree(self) -> None:
        if self.told:
            self.do(self._check())

    async def _check(self) -> None:
        views = {str(v.record.name): v for v in await self.house.machines.list(MachineQuery())}
        for name, told in self.told.items():
            assert (name in views) == (not told.deleted) or (told.to_be_deleted and not told.deleted), name
        for name, view in views.items():
            told = self.told.setdefault(name, Told(view.record.id))  # a fork whose client was not told of it
            await self._come_to_rest(name)
            await self._check_tape(told)
            await self._check_memory(name, told)
        for told in self.told.values():
            if told.deleted:
                await self._check_tape(told)
        await self._thin_out()

    async def _thin_out(self) -> None:
        """The oldest go, so that young ones meet the crowd, too."""
        living = [name for name, told in self.told.items() if not told.to_be_deleted]
        for name in living[: max(0, len(living) - MACHINES_MAX)]:
            await self.delete(name)
        if not living:
            await self._create(self._another_name())

    async def _come_to_rest(self, name: str) -> None:
        async with asyncio.timeout(20):
            while (view := await self.house.machines.get(name)).pending or Residence(view.record.residence) not in AT_REST:
                with contextlib.suppress(EverforgeError):
                    await self.house.machines.wake(name)  # somebody asks for it: what was left half done is put right
                await asyncio.sleep(0.001)

    async def _check_tape(self, told: Told) -> None:
        events = await self.store.events(told.id, Position(-1), 100_000)
        position = -1
        for event in events:
            assert event.position > position, "positions must rise"
            position = event.position + event.width - 1
        accepted = [e.instruction for e in events if isinstance(e, Accepted)]
        ended = {e.instruction: e for e in events if isinstance(e, Ended)}
        assert len(accepted) == len(set(accepted)), "accepted twice"
        assert len(ended) == sum(isinstance(e, Ended) for e in events), "ended twice"
        record = await self.store.machine(told.id)
        own = -1 if record is None or record.source_position is None else record.source_position  # a fork begins in the middle of its source's doings
        assert {e.instruction for e in events if isinstance(e, Accepted) and e.position > own} <= set(ended) <= set(accepted), (
            "accepted and not ended"
        )
        assert told.accepted <= set(accepted), "a number that was told is not on the tape"
        assert told.ends.items() <= ended.items(), "an end that was told is not on the tape"

    async def _check_memory(self, name: str, told: Told) -> None:
        kept = {p.snapshot for p in await self.house.machines.points(name)}
        assert told.snapshots <= kept, "a point that was told of is gone"
        view = await self.house.machines.get(name)
        assert view.state != "broken", view.record.error
        ended = await self.house.machines.run(name, LOOK)
        events = await self.store.events(told.id, Position(-1), 100_000)
        assert ended.value == repr(replay(events, self.store.taken_at)), (ended, events)

    def teardown(self) -> None:
        try:
            if hasattr(self, "house"):
                self.do(self._shut())
        finally:
            self.loop.close()

    async def _shut(self) -> None:
        await self.house.check_nothing_leaked()
        await self.house.close()


async def _outcomes(clients: list[asyncio.Task[None]], *allowed: type[BaseException]) -> None:
    """A client may be refused, with an error of the one tree; anything else is a mistake of ours."""
    for outcome in await asyncio.gather(*clients, return_exceptions=True):
        if isinstance(outcome, BaseException) and not isinstance(outcome, allowed):
            raise outcome
