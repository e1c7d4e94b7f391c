"""A server in a process of its own, to be killed. Begins at the line "start", then speaks JSON lines on its standard input and output: {"id", "call", "args"} -> {"id", "value" | "error"}.

After `kill_at` with "N:STEP" it ends itself, its packing process or its warden with SIGKILL when it comes to that step for the Nth time, or so many seconds later;
`steps` tells every step since `forget_steps`, with its time. After `fail` one of its calls fails (kit.faults), until `mend`. {"drop": id} is a caller
that goes away.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from everforge.egress.settings import EgressSettings
from everforge.engine.gvisor.engine import Gvisor
from everforge.machines.forge import Forge
from everforge.machines.requests import NewMachine
from everforge.machines.service import Machines
from everforge.machines.steps import Steps
from everforge.server import bootstrap, loop
from everforge.store.base import MachineQuery
from everforge.wire.errors import EverforgeError
from everforge.wire.events import Event
from everforge.wire.ids import OWNER
from kit.faults import Fault, Faults, faulty_parts
from kit.packed import until_packed
from kit.real import LINGER_SECONDS, TESTED


class Listener:
    """Hears every step, and ends a process at one, or soon after."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, float]] = []
        self.killed = threading.Event()
        self._seen = Counter[str]()
        self._kill_at: str | None = None
        self._seconds = 0.0
        self._pid: Callable[[], int | None] = os.getpid

    def forget(self) -> None:
        self.heard, self._kill_at = [], None
        self._seen.clear()

    def kill_at(self, step: str, seconds: float, pid: Callable[[], int | None]) -> None:
        self.forget()
        self.killed.clear()
        self._kill_at, self._seconds, self._pid = step, seconds, pid

    def listen(self, step: str) -> None:
        self._seen[step] += 1
        here = f"{self._seen[step]}:{step}"
        self.heard.append((here, time.monotonic()))
        if here == self._kill_at:
            if self._seconds:
                threading.Timer(self._seconds, self._kill).start()
            else:
                self._kill()

    def _kill(self) -> None:
        if pid := self._pid():
            os.kill(pid, signal.SIGKILL)
        self.killed.set()


listener = Listener()
faults = Faults()


async def call(machines: Machines, name: str, args: dict[str, Any]) -> Any:
    if name == "create":
        return await machines.create(NewMachine(**args))
    if name == "tape":
        return [{"kind": e.kind, **plain(e)} async for e in machines.read(args["name"])]
    if name == "list":
        return await machines.list(MachineQuery())
    if name == "warden":
        engine: Any = machines.forge.engine
        assert isinstance(engine.inner, Gvisor)
        return engine.warden_pid
    if name == "fail":
        return faults.plan(Fault(**args))
    if name == "mend":
        return faults.clear()  # how often something failed
    if name == "steps":
        return listener.heard
    if name == "forget_steps":
        return listener.forget()
    if name == "kill_at":
        victims: dict[str, Callable[[], int | None]] = {
            "server": os.getpid,
            "packer": lambda: packer_of(machines),
            "warden": lambda: cast(Any, machines.forge.engine).warden_pid,
        }
        return listener.kill_at(args["step"], args["seconds"], victims[args["whom"]])
    if name == "until_killed":
        return await asyncio.to_thread(listener.killed.wait, 60)
    if name == "until_packed":
        return await until_packed(machines, args["name"])
    if name == "claims":
        return await claims(machines)
    if name == "freeze":
        return await freeze(machines, args["name"])
    return await getattr(machines, name)(**args)


def packer_of(machines: Machines) -> int | None:
    """Where it is between two jobs, or not yet begun, there may be none."""
    snapshots: Any = machines.forge.snapshots
    process = snapshots._packer._process
    return None if process is None or process.returncode is not None else process.pid


async def freeze(machines: Machines, name: str) -> None:
    """Stops its processes, as a server does that is killed before their `go`."""
    keeper = machines.forge.keepers.named(OWNER, name)
    assert keeper is not None
    assert keeper.residency.housing.incarnation is not None
    await keeper.residency.housing.incarnation.freeze()


async def claims(machines: Machines) -> tuple[list[str], list[str]]:
    """Sandboxes and snapshot folders that somebody needs."""
    engine: Any = machines.forge.engine
    claimed = [str(v.record.sandbox) for v in await machines.list(MachineQuery()) if v.record.sandbox]
    waiting = [str(id) for id, sandbox in engine._sandboxes.items() if sandbox.pooled]
    folders = await machines.forge.store.referenced_snapshots() | machines.forge.templates.in_use
    return claimed + waiting, [str(f) for f in folders]


def plain(value: Any) -> Any:
    if isinstance(value, Event):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    return value


def egress_settings() -> EgressSettings:
    """Places that the test has opened: EVERFORGE_TEST_OPENED="127.0.0.1:9000 ..."."""
    return EgressSettings(egress="none", allow_hosts=tuple(os.environ.get("EVERFORGE_TEST_OPENED", "").split()))


async def serve(data: Path) -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    logging.getLogger("everforge.machines.recover").setLevel(logging.INFO)
    setattr(bootstrap, "Forge", lambda **parts: Forge(**faulty_parts(faults, **parts)))  # noqa: B010 - the one place where a server is put together
    machines, folder = await bootstrap.open_machines(
        data, TESTED, egress=egress_settings(), steps=Steps(listener.listen), warden_linger_seconds=LINGER_SECONDS
    )
    answers: dict[int, asyncio.Task[None]] = {}

    async def answer(ask: dict[str, Any]) -> None:
        try:
            said = {"id": ask["id"], "value": plain(await call(machines, ask["call"], ask["args"]))}
        except EverforgeError as e:
            said = {"id": ask["id"], "error": [e.code, e.message]}
        sys.stdout.write(json.dumps(said, default=str) + "\n")
        sys.stdout.flush()

    sys.stdout.write(json.dumps({"id": 0, "value": "ready"}) + "\n")
    sys.stdout.flush()
    reader = asyncio.StreamReader(limit=2**24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        ask = json.loads(line)
        if "drop" in ask:
            if going := answers.get(ask["drop"]):
                going.cancel()
            continue
        task = answers[ask["id"]] = asyncio.create_task(answer(ask))
        task.add_done_callback(lambda _, number=ask["id"]: answers.pop(number))
    await machines.forge.stop()
    folder.unlock()


if __name__ == "__main__":
    if os.read(0, len(b"start\n")):  # unbuffered: what follows is for the loop's own reader
        loop.run(serve(Path(sys.argv[1])))
