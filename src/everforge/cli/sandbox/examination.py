"""All attacks on one new machine, and the two views of it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from everforge.folders import data_folder

from ..progress import quiet_progress
from .attack import Group, Seen
from .attacks import GROUPS
from .bait import laid_out
from .ground import Found, a_machine, a_server, an_open_machine, running_server, waiting_in
from .interruption import interruptible
from .trial import Tried, attempts, in_machine, look
from .views import Row, rows, surroundings

LOOK_SECONDS = 15.0
HERE = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Examination:
    tried: list[Tried]
    views: list[Row]
    url: str
    running: bool  # the server was there before
    local: bool  # it is on this computer
    seconds: float

    @property
    def held(self) -> bool:
        return bool(self.tried) and all(one.outcome.held for one in self.tried)

    def of(self, group: Group) -> list[Tried]:
        return [one for one in self.tried if one.group is group]

    def for_programs(self) -> dict[str, Any]:
        return {
            "held": self.held,
            "seconds": round(self.seconds, 1),
            "server": self.url,
            "own_server": not self.running,  # started for this, and gone since
            "attacks": [
                {"name": one.attack.name, "question": one.group.question, "tried": one.attack.tried, **asdict(one.outcome)} for one in self.tried
            ],
            "views": [asdict(row) for row in self.views],
        }


def free_mb(found: Found) -> int | None:
    """On the server's disk, where that is this computer's; of one that was started for this, where its machines would else lie."""
    place = found.data if found.running else data_folder()
    if place is None:
        return None
    there = next(folder for folder in (place, *place.parents) if folder.is_dir())
    return shutil.disk_usage(there).free >> 20


def examine(tell: Callable[[str], None]) -> Examination:
    """Tells first which server it is."""
    began = time.monotonic()
    running = running_server()
    tell(f"testing the server at {running.server.base_url}" if running else "no server is running here: testing one that is started for this")
    with interruptible() as interruption, quiet_progress() as progress, laid_out() as bait:
        progress.step("making machines" if running else "starting a server for this")
        with a_server(running) as found, an_open_machine(found.server, bait) as machine, a_machine(found.server) as neighbour, interruption:
            server = found.server
            parts = urlsplit(server.base_url)
            bait.server = (parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
            bait.warden = str(found.data / "run" / "warden.socket") if found.data else ""
            bait.neighbour = waiting_in(neighbour, bait.secret)
            info = machine.info()
            bait.limits = {"memory_mb": info.memory_mb, "processes": info.processes, "disk_mb": info.disk_mb}
            bait.free_mb = free_mb(found)
            ground, tried = in_machine(machine), list[Tried]()
            for one in attempts(GROUPS, ground, bait):
                tried.append(one)
                progress.step(one.group.question)
            inside = look(surroundings, ground, {}, LOOK_SECONDS)
    outside = Seen("value", surroundings({}))
    return Examination(tried, rows(inside, outside, bait.limits), server.base_url, found.running, parts.hostname in HERE, time.monotonic() - began)
