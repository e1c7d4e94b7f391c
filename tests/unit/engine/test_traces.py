"""What a crash left of sandboxes is removed: all of it, and nothing of those that are held."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from everforge.engine.warden import folders, processes
from everforge.engine.warden.traces import Traces
from everforge.wire.ids import new_sandbox_id

SLEEP = "import time; time.sleep(60)"


@contextmanager
def of_sandbox(places: folders.Folders, id: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", SLEEP, f"--root={places.state}", id])
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


async def test_what_a_command_starts_while_it_is_swept_away_is_swept_away_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = folders.find(tmp_path)
    folders.make(places)
    kept, stray = new_sandbox_id(), new_sandbox_id()
    scan, looks = processes.scan, list[int]()
    with of_sandbox(places, kept) as held, of_sandbox(places, stray) as command, of_sandbox(places, stray) as child:

        def look(state: Path) -> dict[str, list[int]]:
            looks.append(1)
            found = scan(state)
            if len(looks) == 1:  # not there yet
                found[stray].remove(child.pid)
            return found

        monkeypatch.setattr(processes, "scan", look)
        assert await Traces(places, None).sweep({kept}) == 1
        assert (held.poll(), command.wait(5), child.wait(5)) == (None, -9, -9)
