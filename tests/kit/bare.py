"""No walls at all: code runs as a plain process of this computer. What judges of attacks must not take for a sandbox."""

from __future__ import annotations

import signal
import subprocess
import sys

from everforge.cli.sandbox.trial import Ran

GRACE_SECONDS = 0.5


def bare(code: str, seconds: float) -> Ran:
    """Told to stop when its time is over, and not made to: whoever does not listen goes on running, and is said to."""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return Ran("still running")
        return Ran("timed_out", out, err)
    return Ran("value" if process.returncode == 0 else "error", out, err.strip().splitlines()[-1] if err.strip() else "")
