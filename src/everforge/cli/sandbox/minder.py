"""Minds a server that was started for a test: `python -m everforge.cli.sandbox.minder`.

Says `data FOLDER` first, in which all of its data lie; the server itself says `ready URL`. When its stdin ends, machines, server and folder
go. That is when whoever started it closes the other end, and as well when they are killed: who is killed puts nothing away, so somebody else must.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from everforge.wire.errors import EverforgeError

FOLDER = "everforge-test-"
DATA = "data "
END_SECONDS = 60.0


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    with contextlib.suppress(BrokenPipeError), tempfile.TemporaryDirectory(prefix=FOLDER, ignore_cleanup_errors=True) as name:
        print(f"{DATA}{name}", flush=True)
        _mind(Path(name))
    return 0


def _mind(data: Path) -> None:
    words = [sys.executable, "-m", "everforge.server", "serve", "--port", "0", "--data", str(data)]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, env=_environment())
    try:
        watched = os.pidfd_open(process.pid)
        select.select([sys.stdin, watched], [], [])
    finally:
        _delete_machines(data)
        _end(process)
        _until_warden_ended(data)


def _environment() -> dict[str, str]:
    """The small image: it is there after setup, and starts sooner. And the warden need not wait for a next server."""
    return {**os.environ, "EVERFORGE_IMAGE": "minimal", "EVERFORGE_READY_SANDBOXES": "0", "EVERFORGE_WARDEN_LINGER_SECONDS": "0.2"}


def _delete_machines(data: Path) -> None:
    """The orderly end of a server leaves alone what runs in machines. Where this fails, their warden ends them once their folder is gone."""
    from everforge import Everforge

    os.environ["EVERFORGE_DATA"] = str(data)  # where that server is found
    with contextlib.suppress(EverforgeError, OSError), Everforge((data / "owner.token").read_text().strip(), retry_seconds=0) as server:
        for machine in list(server.machines()):
            server.machine(machine.name).delete()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _until_warden_ended(data: Path) -> None:
    """The last that it does is to remove its folder."""
    deadline = time.monotonic() + END_SECONDS
    while (data / "run").exists() and time.monotonic() < deadline:
        time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main())
