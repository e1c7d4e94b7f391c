"""Try a runsc: start a sandbox, save it, restore it, and see that it goes on where it was. A version string proves nothing.

The trial runs in a process of its own (trial.py), in a mount namespace, and for an ordinary user in a user namespace, as machines will.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from . import trial

TRIAL_SECONDS = 90.0
_NAMESPACES_AS_ROOT = "root needs leave to mount (CAP_SYS_ADMIN), which a container must be given"
_NAMESPACES_AS_USER = (
    "allow user namespaces (`sysctl -w kernel.unprivileged_userns_clone=1`, `sysctl -w user.max_user_namespaces=10000`, and on systems with "
    "AppArmor `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`), or run as root"
)
_REMEDIES = {
    "exec": "it must be built for this kind of processor and system",
    "flags": "a newer one is needed",
    "start": "look for what forbids it here: a container, a chroot, a security module",
    "save": "another build of runsc is needed",
    "restore": "another build of runsc is needed",
}


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    fit: bool
    stage: str  # the step that failed: file, namespaces, exec, flags, start, save, restore; "done" when all went well
    message: str  # one sentence for people
    remedy: str = ""
    seconds: float = 0.0
    remembered: bool = False


def probe_runsc(path: Path) -> ProbeOutcome:
    if not path.is_file():
        return ProbeOutcome(False, "file", f"{path} is not there", "name one that is")
    if not os.access(path, os.X_OK):
        return ProbeOutcome(False, "file", f"{path} may not be executed", f"run `chmod +x {path}`")
    if problem := namespace_problem():
        return ProbeOutcome(False, "namespaces", problem, namespace_remedy())
    # Short paths: the trial's sockets lie in this folder, and the kernel allows 107 characters.
    with tempfile.TemporaryDirectory(prefix="everforge-probe-", dir="/tmp" if os.access("/tmp", os.W_OK) else None) as work:
        return _outcome(_run_trial(path, Path(work)))


def namespace_problem() -> str:
    """Why this user can have no sandboxes; "" when it can."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return "the program unshare (of the package util-linux) is missing"
    argv = [unshare, *_namespaces(), "true"]
    try:
        done = subprocess.run(argv, capture_output=True, encoding="utf-8", errors="replace", timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"namespaces cannot be made ({error})"
    if done.returncode == 0:
        return ""
    kind = "mount" if os.geteuid() == 0 else "user"
    return f"{kind} namespaces cannot be made ({done.stderr.strip() or f'exit code {done.returncode}'})"


def namespace_remedy() -> str:
    return _NAMESPACES_AS_ROOT if os.geteuid() == 0 else _NAMESPACES_AS_USER


def _namespaces() -> list[str]:
    return ["--mount"] if os.geteuid() == 0 else ["--map-root-user", "--mount"]


def _run_trial(path: Path, work: Path) -> dict[str, Any]:
    argv = ["unshare", *_namespaces(), sys.executable, "-I", trial.__file__, str(path.absolute()), str(work)]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace")
    err = ""
    try:
        out, err = process.communicate(timeout=TRIAL_SECONDS)
        return cast("dict[str, Any]", json.loads(out))
    except subprocess.TimeoutExpired:
        return {"stage": "start", "detail": f"it took longer than {TRIAL_SECONDS:.0f} seconds"}
    except ValueError:
        return {"stage": "start", "detail": err.strip()[-300:] or f"the trial ended with exit code {process.returncode}"}
    finally:
        # SIGTERM lets the trial clear away its sandbox; it is gone already when all went well.
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _outcome(told: dict[str, Any]) -> ProbeOutcome:
    stage, detail, seconds = str(told.get("stage")), str(told.get("detail", "")), float(told.get("seconds", 0.0))
    if stage == "done":
        return ProbeOutcome(True, "done", f"it started, saved and restored a sandbox in {seconds:.1f} seconds", seconds=seconds)
    sentence = {
        "exec": f"it cannot be executed here ({detail})",
        "flags": f"it is too old: it does not know what machines need ({detail})",
        "start": f"it could not start a sandbox ({detail})",
        "save": f"it could not save a running sandbox ({detail})",
        "restore": f"it could not restore what it had saved ({detail})",
    }.get(stage, detail)
    return ProbeOutcome(False, stage, sentence, _REMEDIES.get(stage, _REMEDIES["save"]), seconds)
