"""J: a Jupyter kernel, what one would take instead."""

from __future__ import annotations

import importlib
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

READY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Kernel:
    client: Any
    pids: list[int]  # of all its processes

    def seconds(self, code: str) -> tuple[float, int]:
        """Run this through its channels, which is quicker than `execute_interactive`: until it is idle again, and how many lines it printed.

        What is still to be read then is read after the clock has stopped.
        """
        lines = 0
        began = time.perf_counter()
        asked = self.client.execute(code)
        while True:
            message = self.client.get_iopub_msg(timeout=READY_SECONDS)
            if message["parent_header"].get("msg_id") != asked:
                continue
            content = message["content"]
            if message["msg_type"] == "stream":
                lines += content["text"].count("\n")
            elif content.get("execution_state") == "idle":
                break
        took = time.perf_counter() - began
        reply = self.client.get_shell_msg(timeout=READY_SECONDS)
        if reply["content"]["status"] != "ok":
            raise RuntimeError(f"the kernel failed: {reply['content']}")
        return took, lines


@contextmanager
def kernel(code: str = "None") -> Generator[Kernel]:
    """One that has run this."""
    jupyter_client: Any = importlib.import_module("jupyter_client.manager")  # of the `bench` group only
    manager, client = jupyter_client.start_new_kernel(startup_timeout=READY_SECONDS, kernel_name="python3", stderr=subprocess.DEVNULL)
    try:
        found = Kernel(client, family(int(manager.provisioner.pid)))
        found.seconds(code)
        yield found
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def family(pid: int) -> list[int]:
    """A process and all its descendants."""
    children = Path(f"/proc/{pid}/task").glob("*/children")
    return [pid, *(found for file in children for child in file.read_text().split() for found in family(int(child)))]
