"""Other programs, run for an image: one way to call them, one way they fail."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from everforge.wire.errors import ImageBuildFailed

TIMEOUT_SECONDS = 1800.0  # a slow mirror is slow; a hanging one ends here
TOLD_LINES = 4  # how much of a program's complaint goes into ours

# Nothing of the host's environment reaches a program that shapes the image, or two hosts would build two images.
IMAGE_ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8", "HOME": "/", "PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": "0"}


def run(argv: Sequence[str | Path], doing: str, remedy: str = "", env: Mapping[str, str] | None = None, input: str = "") -> str:
    """What it printed. `doing` completes the sentence "could not ..." when it fails."""
    remedy = f"; {remedy}" if remedy else ""
    try:
        done = subprocess.run(
            [str(word) for word in argv], env=env, input=input, capture_output=True, encoding="utf-8", errors="replace", timeout=TIMEOUT_SECONDS
        )
    except FileNotFoundError:
        raise ImageBuildFailed(f"could not {doing}: there is no program {str(argv[0])!r}{remedy}") from None
    except subprocess.TimeoutExpired:
        raise ImageBuildFailed(f"could not {doing}: {argv[0]} took longer than {TIMEOUT_SECONDS:.0f} seconds{remedy}") from None
    if done.returncode:
        raise ImageBuildFailed(f"could not {doing}: {last_words(done.stderr or done.stdout)}{remedy}")
    return done.stdout


def last_words(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " / ".join(lines[-TOLD_LINES:]) or "it did not say why"


def run_inside(root: Path, argv: Sequence[str], doing: str, env: Mapping[str, str] | None = None) -> str:
    """Run a program of the image itself, with the image as its whole file system. Without root, in a user namespace of its own."""
    chroot = shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin:/bin") or "chroot"
    prefix = [] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    remedy = "" if os.geteuid() == 0 else "without root this needs user namespaces, see `everforge doctor`"
    return run([*prefix, chroot, root, *argv], doing, remedy, env={**IMAGE_ENV, **(env or {})})
