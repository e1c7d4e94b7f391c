"""Several clients and a saboteur at a real server: the clients append numbers in machines, and let them sleep, fork and go back; the saboteur kills the
server, the warden and sandboxes, makes calls fail, and fills the disk for a moment. Everything is drawn from one seed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .faults import FAILED, FULL
from .history import LOOK, Done, Sent, append_code, judge, key_of
from .real import sandboxes_of
from .serverprocess import Died, Refusal, ServerProcess

CLIENTS, MACHINES, FORKS_MAX = 4, 3, 3
INSTRUCTION_SECONDS = 60.0
HAND_OVER_SECONDS = 5.0  # until another warden surely has what a killed one held
VALUE_SHARE_MIN = 0.5  # of the numbers of one machine; the rest are what saboteurs cost, and those that a rollback cancelled
PATIENCE_SECONDS = 90.0  # of a client, for one number
PASSES = {"Uncertain", "DiskFull", "WakeFailed", "SaveFailed", "Internal", "QueueFull", "NoCapacity", "Refused", "SandboxLost"}
IS_GONE = {"MachineNotFound"}
FAULTS = [
    ("engine.restore", "WakeFailed"),
    ("sandbox.save", "SaveFailed"),
    ("sandbox.destroy", "SandboxLost"),
    ("snapshots.begin", FULL),
    ("snapshots.finish", "SaveFailed"),
    ("store.commit", FULL),
    ("store.commit", FAILED),
    ("store.points", FAILED),
    ("store.instruction", FAILED),
]


@dataclass
class Place:
    """One machine, as its clients know it."""

    name: str
    sent: list[Sent] = field(default_factory=list[Sent])
    done: Done = field(default_factory=Done)
    is_fork: bool = False


class Turmoil:
    def __init__(self, data: Path, seed: int, seconds: float) -> None:
        self.data = data
        self.done = Counter[str]()
        self.faults = 0
        self._killed: list[str] = []  # sandboxes
        self._warden_killed_at = float("-inf")
        self._seconds = seconds
        self._until = 0.0
        self._draw = random.Random(seed)
        self._next = 0
        self._places: dict[str, Place] = {}
        self._deleted: set[str] = set()
        self._claims: dict[str, str] = {}  # sandbox -> its machine
        self._server: ServerProcess
        self._following: ServerProcess
        self._is_up = asyncio.Event()

    # --- from its beginning to its end -----------------------------------------------------------------------------------------------------

    async def run(self) -> ServerProcess:
        """The server that is left, with every machine in it."""
        self._server = await ServerProcess(self.data).start()
        self._following = await ServerProcess(self.data).spawn()
        self._is_up.set()
        for number in range(MACHINES):
            name = f"m{number}"
            await self._server.call("create", name=name, idle_seconds=self._draw.choice([0.3, 2.0, 60.0]))
            await self._server.call("run", name=name, code="1")  # one that cannot even be begun has nothing to lose
            self._places[name] = Place(name)
        self._until = time.monotonic() + self._seconds
        try:
            async with asyncio.TaskGroup() as everybody:
                for part in (self._sabotage(), self._watch(), *(self._be_a_client() for _ in range(CLIENTS))):
                    everybody.create_task(part)
        finally:
            await self._following.kill()
        return self._server

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._until

    async def judge(self) -> dict[str, list[str]]:
        """Complaints, by machine."""
        found: dict[str, list[str]] = {}
        for place in self._places.values():
            memory = await self._persist("run", name=place.name, code=LOOK)
            tape = await self._persist("tape", name=place.name)
            place.done.faults = self.faults
            place.done.losses_max += sum(self._claims.get(sandbox) == place.name for sandbox in self._killed)
            if complaints := judge(tape, place.sent, eval(memory["value"]), place.done, value_share_min=VALUE_SHARE_MIN):
                found[place.name] = complaints
        return found

    async def delete_all(self) -> None:
        for name in list(self._places):
            await self._persist("delete", name=name)

    # --- clients ---------------------------------------------------------------------------------------------------------------------------

    async def _be_a_client(self) -> None:
        acts = {self._append: 60, self._resend: 6, self._cut_off: 8, self._hibernate: 6, self._wake: 3, self._snapshot: 4, self._fork: 3}
        acts |= {self._roll_back: 3, self._delete: 2}
        while not self.is_over:
            (act,) = self._draw.choices(list(acts), list(acts.values()))
            place = self._draw.choice(list(self._places.values()))
            try:
                await act(place)
                self.done[act.__name__.strip("_")] += 1
            except Refusal as e:
                if e.code not in IS_GONE or place.name not in self._deleted:
                    raise

    async def _persist(self, verb: str, **args: Any) -> Any:
        """Until there is an answer; only for what may be done again."""
        answers: list[str] = []
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    try:
                        return await self._ask(verb, **args)
                    except (Died, Refusal) as e:
                        if isinstance(e, Refusal) and e.code not in PASSES:
                            raise
                        answers.append(repr(e))
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"no answer to {verb} {args} within {PATIENCE_SECONDS:g} s, only: {answers[-3:]}; {await self._state()}") from None

    async def _state(self) -> str:
        """For whoever has to find out what happened."""
        try:
            async with asyncio.timeout(5):
                views = await self._server.call("list")
                said = [f"{v['record']['name']}: {v['state']}, {v['pending']} pending, {v['record']['error']}" for v in views]
        except (TimeoutError, Died, Refusal) as e:
            said = [f"the server does not answer: {e!r}"]
        return "\n".join([*said, self._server.log.read_text()[-4000:]])

    async def _once(self, verb: str, **args: Any) -> Any:
        """None when it was refused for a while, or cut off: nobody knows then whether it was done."""
        try:
            return await self._ask(verb, **args)
        except Died:
            return None
        except Refusal as e:
            if e.code not in PASSES:
                raise
            return None

    async def _ask(self, verb: str, **args: Any) -> Any:
        await self._is_up.wait()
        return await self._server.call(verb, **args)

    def _number(self) -> int:
        self._next += 1
        return self._next

    def _new(self, place: Place) -> Sent:
        place.sent.append(one := Sent(self._number()))
        return one

    async def _append(self, place: Place) -> None:
        await self._send(place, self._new(place))

    async def _send(self, place: Place, one: Sent) -> None:
        args = {"code": append_code(one.number), "key": key_of(one.number), "timeout_seconds": INSTRUCTION_SECONDS}
        instruction, _ = await self._persist("exec", name=place.name, **args)
        one.instructions.add(instruction)
        ended = await self._persist("result", name=place.name, instruction=instruction)
        one.ends.add((ended["end"], ended["value"]))

    async def _resend(self, place: Place) -> None:
        """As a client does that does not know whether it was heard. It was, and nothing may come of it."""
        if place.sent:
            await self._send(place, self._draw.choice(place.sent[-20:]))

    async def _cut_off(self, place: Place) -> None:
        """A client that goes away in the middle, and comes again with the same key."""
        one = self._new(place)
        sending = asyncio.ensure_future(self._send(place, one))
        await asyncio.wait([sending], timeout=self._draw.uniform(0.0, 0.05))
        sending.cancel()
        await asyncio.wait([sending])
        await self._send(place, one)

    async def _hibernate(self, place: Place) -> None:
        await self._once("hibernate", name=place.name)

    async def _wake(self, place: Place) -> None:
        await self._once("wake", name=place.name)

    async def _snapshot(self, place: Place) -> None:
        label = f"p{self._number()}"
        try:
            if (point := await self._once("snapshot", name=place.name, snapshot_name=label)) is not None:
                place.done.points[label] = point["position"], point["instruction"]
        except Refusal as e:
            if e.code != "NameTaken":  # the same state has a name already
                raise

    async def _roll_back(self, place: Place) -> None:
        if place.done.points:
            label = self._draw.choice(list(place.done.points))
            place.done.asked.append(label)
            if await self._once("rollback", name=place.name, snapshot=label) is not None:
                place.done.went_back.append(label)

    async def _fork(self, place: Place) -> None:
        """What its source was sent is the source's to answer for; the fork's tape begins with it all the same."""
        if sum(p.is_fork for p in self._places.values()) < FORKS_MAX:
            name = f"f{self._number()}"
            if (made := await self._once("fork", name=place.name, names=[name], key=name)) is not None:
                self._places[name] = Place(name, done=Done(inherited=made[0]["record"]["source_position"]), is_fork=True)

    async def _delete(self, place: Place) -> None:
        if place.is_fork:
            self._deleted.add(place.name)
            self._places.pop(place.name, None)
            await self._persist("delete", name=place.name)

    # --- the saboteur ----------------------------------------------------------------------------------------------------------------------

    saboteurs = ("kill_server", "kill_warden", "kill_both", "kill_sandbox", "fail_a_call", "fill_the_disk")

    async def _sabotage(self) -> None:
        acts = dict(zip(self.saboteurs, (4, 2, 1, 3, 8, 3), strict=True))
        while not self.is_over:
            await asyncio.sleep(self._draw.uniform(0.1, 0.8))
            (act,) = self._draw.choices(list(acts), list(acts.values()))
            with contextlib.suppress(Died):
                await getattr(self, f"_{act}")()
                self.done[act] += 1
        await self._server.call("mend")

    async def _kill_server(self) -> None:
        self._is_up.clear()
        if time.monotonic() < self._warden_killed_at + HAND_OVER_SECONDS:
            await self._allow_losses()  # what the old warden held may have nobody now
        await self._server.kill()
        try:
            self._server = await self._following.start()
        except Died as e:
            raise AssertionError("no server can be started any more") from e
        self._is_up.set()
        self._following = await ServerProcess(self.data).spawn()

    async def _kill_warden(self) -> None:
        warden = await self._server.call("warden")
        self._warden_killed_at = time.monotonic()
        kill(warden)

    async def _kill_both(self) -> None:
        self._is_up.clear()
        warden = await self._server.call("warden")
        await self._allow_losses()
        await self._server.kill()
        kill(warden)
        self._warden_killed_at = float("-inf")  # this one is counted
        await self._kill_server()

    async def _allow_losses(self) -> None:
        """Everything that is awake, or may be the next moment, is about to lose its memory."""
        for view in await self._server.call("list"):
            place = self._places.get(view["record"]["name"])
            if place is not None and (view["state"] != "asleep" or view["pending"]):
                place.done.losses_max += 1

    async def _kill_sandbox(self) -> None:
        running = [(pid, command.split()[-1]) for pid, command in sandboxes_of(self.data).items() if " boot " in command]
        if running:
            pid, sandbox = self._draw.choice(running)
            self._killed.append(sandbox)
            await self._learn_claims()
            kill(pid)
            await self._learn_claims()  # one that was being woken may have got its sandbox just now

    async def _fail_a_call(self) -> None:
        what, error = self._draw.choice(FAULTS)
        self.faults += 1
        await self._server.call("fail", what=what, nth=self._draw.randint(1, 4), error=error)

    async def _fill_the_disk(self) -> None:
        await self._server.call("fail", what="store.commit", nth=1, error=FULL, lasting=True)
        await asyncio.sleep(self._draw.uniform(0.05, 1.0))
        await self._server.call("mend")

    # --- at most one live copy ---------------------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        while not self.is_over:
            await asyncio.sleep(0.2)
            await self._learn_claims()
            running = {command.split()[-1] for command in sandboxes_of(self.data).values() if " boot " in command}
            for name, count in Counter(self._claims[sandbox] for sandbox in running if sandbox in self._claims).items():
                assert count == 1, f"{name} lives {count} times"
            self.done["look"] += 1

    async def _learn_claims(self) -> None:
        for view in await self._once("list") or []:
            if sandbox := view["record"]["sandbox"]:
                self._claims[sandbox] = view["record"]["name"]


def kill(pid: int) -> None:
    """It may have been quicker."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
