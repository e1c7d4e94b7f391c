"""A model of what machines promise, and a hypothesis state machine that drives random operations against it, on any engine."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from everforge.machines.lifecycle import Residence
from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from everforge.store.base import MachineQuery
from everforge.wire.errors import EverforgeError, NameTaken, SaveFailed
from everforge.wire.events import Accepted, Ended

T = TypeVar("T")


@dataclass
class Model:
    """One machine as its owner believes it to be."""

    seen: list[int] = field(default_factory=list[int])
    saved: list[int] | None = None  # at the last snapshot: what the loss of the host goes back to; None is the template
    labels: set[str] = field(default_factory=set[str])
    points: dict[str, list[int] | None] = field(default_factory=dict[str, "list[int] | None"])
    sent: int = 0

    def save(self) -> None:
        self.saved = list(self.seen)

    def lose(self) -> None:
        self.seen = list(self.saved or [])


class MachinesModel(RuleBasedStateMachine):
    """Subclasses say how to start, kill and lose a server."""

    names = Bundle("names")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.models: dict[str, Model] = {}
        self.counter = 0

    # --- for subclasses --------------------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        raise NotImplementedError

    async def crash(self) -> None:
        """The server dies, and another starts."""
        raise NotImplementedError

    async def lose(self) -> None:
        """The server and everything that runs dies, and another starts."""
        raise NotImplementedError

    async def shut(self) -> None:
        raise NotImplementedError

    @property
    def machines(self) -> Machines:
        raise NotImplementedError

    # --- operations ------------------------------------------------------------------------------------------------------------------------

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(work, 60))

    @initialize()
    def begin(self) -> None:
        self.do(self.open())

    @rule(target=names)
    def create(self) -> str:
        self.counter += 1
        name = f"m{self.counter}"
        self.do(self.machines.create(NewMachine(name=name)))
        self.models[name] = Model()
        return name

    @rule(name=names)
    def append(self, name: str) -> None:
        model = self.models[name]
        model.sent += 1
        code = f"seen = [*globals().get('seen', []), {model.sent}]\nprint({model.sent})\nseen"
        ended = self.do(self.machines.run(name, code))
        model.seen = [*model.seen, model.sent]
        assert ended.value == repr(model.seen), (ended, model)

    @rule(name=names)
    def look(self, name: str) -> None:
        ended = self.do(self.machines.run(name, "globals().get('seen', [])"))
        assert ended.value == repr(self.models[name].seen), (ended, self.models[name])

    @rule(name=names)
    def fail(self, name: str) -> None:
        assert "ZeroDivisionError" in (self.do(self.machines.run(name, "1/0")).error or "")

    @rule(name=names)
    def hibernate(self, name: str) -> None:
        self.do(self.machines.hibernate(name))
        self.models[name].save()

    @rule(name=names)
    def wake(self, name: str) -> None:
        self.do(self.machines.wake(name))

    @rule(name=names, label=st.sampled_from(["a", "b", "c"]))
    def snapshot(self, name: str, label: str) -> None:
        model = self.models[name]
        try:
            point = self.do(self.machines.snapshot(name, label))
        except NameTaken:
            assert model.labels, "a name is taken only when it, or another for the same state, was given"
            return
        assert label not in model.labels
        model.labels.add(label)
        model.save()
        model.points[point.snapshot] = list(model.seen)

    @rule(name=names, which=st.integers(0, 100))
    def roll_back(self, name: str, which: int) -> None:
        model = self.models[name]
        if not model.points:
            return
        target = list(model.points)[which % len(model.points)]
        before = list(model.seen)
        done = self.do(self.machines.rollback(name, snapshot=target))
        model.seen = list(model.points[target] or [])
        model.save()
        if done.undo is not None:
            model.points[done.undo] = before

    @rule(name=names)
    def reset(self, name: str) -> None:
        model = self.models[name]
        undo = self.do(self.machines.reset(name))
        if undo is not None:
            model.points[undo] = list(model.seen)
        model.seen, model.saved = [], None

    @rule(target=names, name=names)
    def fork(self, name: str) -> str:
        self.counter += 1
        fork = f"m{self.counter}"
        self.do(self.machines.fork(name, names=[fork]))
        source = self.models[name]
        source.save()
        self.models[fork] = Model(seen=list(source.seen), saved=list(source.seen), sent=source.sent)
        return fork

    @rule(name=consumes(names))
    def delete(self, name: str) -> None:
        self.do(self.machines.delete(name))
        del self.models[name]

    @rule()
    def kill_the_server(self) -> None:
        self.do(self.crash())

    @rule()
    def kill_everything(self) -> None:
        """What was not saved is gone, and nothing else."""
        self.do(self.lose())
        for model in self.models.values():
            model.lose()

    # --- what always holds -----------------------------------------------------------------------------------------------------------------

    @invariant()
    def tapes_are_in_order_and_each_instruction_ends_once(self) -> None:
        if self.models:
            self.do(self._check_tapes())

    async def _check_tapes(self) -> None:
        views = {str(v.record.name): v for v in await self.machines.list(MachineQuery())}
        assert set(views) == set(self.models)
        for name in self.models:
            assert Residence(views[name].record.residence) is not Residence.BROKEN, views[name].record.error
            events = [e async for e in self.machines.read(name)]
            positions = [e.position for e in events]
            assert positions == sorted(set(positions))
            accepted = [e.instruction for e in events if isinstance(e, Accepted)]
            ended = [e.instruction for e in events if isinstance(e, Ended)]
            assert len(set(accepted)) == len(accepted)
            assert ended == [n for n in accepted if n in set(ended)]

    def teardown(self) -> None:
        try:
            self.do(self.shut())
        finally:
            self.loop.close()


__all__ = ["EverforgeError", "MachinesModel", "SaveFailed", "rule"]
