"""J: a Jupyter kernel, what one would take instead."""

from __future__ import annotations

import importlib
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

READY_SECONDS = 60.0


@contextmanager
def kernel(code: str) -> Generator[list[int]]:
    """One that has run this; gives the pids of all its processes."""
    jupyter_client: Any = importlib.import_module("jupyter_client.manager")  # of the `bench` group only
    manager, client = jupyter_client.start_new_kernel(startup_timeout=READY_SECONDS, kernel_name="python3", stderr=subprocess.DEVNULL)
    try:
        reply: Any = client.execute_interactive(code, timeout=READY_SECONDS)
        if reply["content"]["status"] != "ok":
            raise RuntimeError(f"the kernel failed: {reply['content']}")
        yield family(int(manager.provisioner.pid))
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def family(pid: int) -> list[int]:
    """A process and all its descendants."""
    children = Path(f"/proc/{pid}/task").glob("*/children")
    return [pid, *(found for file in children for child in file.read_text().split() for found in family(int(child)))]
