"""P: a plain python3 started for the purpose, until it has answered. The interpreter of the environment that this runs in."""

from __future__ import annotations

import subprocess
import sys
import time


def seconds(code: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-c", code], check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=120)
    return time.perf_counter() - began
