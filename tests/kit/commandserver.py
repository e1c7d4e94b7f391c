"""`everforge serve` as a user starts it: a process of its own on the real engine, reached over HTTP only."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2

from kit.real import cgroups_of, give_template, mounts_of, processes_of, sandboxes_of

START_SECONDS = 120.0
STOP_SECONDS = 120.0
END_SECONDS = 30.0
READY = "ready "


@dataclass(frozen=True)
class CommandServer:
    url: str
    token: str
    data: Path
    log: Path
    process: subprocess.Popen[str]


@contextlib.contextmanager
def command_server(image: str = "default", **environment: str) -> Iterator[CommandServer]:
    """On any free port, with an empty data folder; at the end nothing of it is left. `environment` is for its settings."""
    data = Path(tempfile.mkdtemp(prefix="ef-"))
    log = data.with_name(f"{data.name}.server.log")
    try:
        give_template(data, image)
        with open(log, "w") as errors:
            process = subprocess.Popen(_command(data), stdout=subprocess.PIPE, stderr=errors, text=True, env={**_environment(image), **environment})
        try:
            url = _address(process, log)
            served = CommandServer(url, (data / "owner.token").read_text().strip(), data, log, process)
            yield served
            _delete_machines(served)
        finally:
            _stop(process)
        _until_gone(data)
    finally:
        for pid in processes_of(data):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(data, ignore_errors=True)
        log.unlink(missing_ok=True)


def _command(data: Path) -> list[str]:
    return [sys.executable, "-m", "everforge", "serve", "--port", "0", "--data", str(data)]


def _environment(image: str) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("EVERFORGE_TOKEN", "EVERFORGE_URL", "FOREVERVM_"))}
    return {**ours, "EVERFORGE_IMAGE": image}


def _address(process: subprocess.Popen[str], log: Path) -> str:
    """From the one line that says so. Read in a thread, since a pipe knows no deadline; to its end, since a full pipe would stop the server."""
    lines: queue.Queue[str] = queue.Queue()
    output = process.stdout
    assert output is not None

    def read() -> None:
        for line in output:
            lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    deadline = time.monotonic() + START_SECONDS
    with contextlib.suppress(queue.Empty):
        while line := lines.get(timeout=max(0.0, deadline - time.monotonic())):
            if line.startswith(READY):
                return line.removeprefix(READY).strip().rstrip("/")
    raise AssertionError(f"the server did not become ready: {log.read_text()[-2000:]}")


def _delete_machines(served: CommandServer) -> None:
    """Nobody wants them any more, and to put each to sleep would take a while."""
    with httpx2.Client(base_url=served.url, headers={"Authorization": f"Bearer {served.token}"}, timeout=60) as client:
        for machine in client.get("/v1/machine/list").json()["machines"]:
            assert client.delete(f"/v1/machine/{machine['name']}").status_code == 200


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


def _until_gone(data: Path) -> None:
    """Every sandbox must have ended. The warden then holds nothing, and would stay half a minute for the next server: nobody waits for that here."""
    _wait(lambda: sandboxes_of(data))
    for pid in processes_of(data):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    _wait(lambda: [*processes_of(data), *cgroups_of(data), *mounts_of(data)])


def _wait(left: Callable[[], Collection[object]]) -> None:
    deadline = time.monotonic() + END_SECONDS
    while found := left():
        assert time.monotonic() < deadline, f"left behind: {found}"
        time.sleep(0.05)
