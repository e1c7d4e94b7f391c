"""Folders outside the clone that cargo builds into, so that what takes long, the packages that ours depend on, is built once for all clones.

Cargo goes by times, and two clones of a package are one to it: in a folder that they share it would take what one has built for the other's. So what
is ours is built anew whenever its sources are not those of the last time, to the letter, and whoever builds has the folder alone meanwhile.

python tools/workshops.py KIND MANIFEST COMMAND...     # the command, with CARGO_TARGET_DIR; MANIFEST is a Cargo.toml with its Cargo.lock beside it
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from everforge.folders import cache_folder

sys.path.insert(0, str(Path(__file__).resolve().parent))
from node_modules import drop_unused

REPO = Path(__file__).resolve().parents[1]
WAIT_SECONDS = 2700  # for another who builds there, from nothing on a slow computer
POLL_SECONDS = 0.2
CLEAN_SECONDS = 120
# Quick to build, and small: nobody debugs what is built here, or builds it a second time with little changed.
SMALL = {"CARGO_INCREMENTAL": "0", "CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_PROFILE_TEST_DEBUG": "0"}


@functools.cache
def cargo() -> Path | None:
    """The one that setup takes."""
    found = subprocess.run([REPO / "tools" / "find_cargo"], capture_output=True, text=True).stdout.strip()
    return Path(found) if found else None


def settings(target: Path) -> dict[str, str]:
    """Variables with which cargo builds there. Its folder comes first in PATH: it takes its rustc from there."""
    found = cargo()
    assert found is not None, "needs cargo 1.85 or later"
    return {**SMALL, "PATH": f"{found.parent}:{os.environ['PATH']}", "CARGO_TARGET_DIR": str(target)}


def environment(target: Path) -> dict[str, str]:
    return {**os.environ, **settings(target)}


def workshop(kind: str, manifest: Path) -> Path:
    """The folder for a package and what it depends on: by its lock and the compiler, so that an update begins anew."""
    mark = hashlib.sha256(_compiler() + manifest.with_name("Cargo.lock").read_bytes()).hexdigest()[:16]
    target = cache_folder() / f"rust-{kind}" / mark
    target.mkdir(parents=True, exist_ok=True)
    os.utime(target)
    drop_unused(target.parent)
    return target


@contextmanager
def held(target: Path, manifest: Path) -> Iterator[str]:
    """Nobody else builds there meanwhile, and nothing is there that was built from other sources. What these are, as a hash. MANIFEST is absolute."""
    package = tomllib.loads(manifest.read_text())["package"]["name"]
    stamp = target / f".{package}.sources"
    with _locked(target / ".held"):
        found = sources(manifest.parent)
        wanted = f"{found} {manifest.parent}"  # tests know where they were built
        if not stamp.exists() or stamp.read_text() != wanted:
            stamp.unlink(missing_ok=True)  # whoever is killed in the middle leaves none, and the next cleans again
            words = ["clean", "--quiet", "--offline", "--package", package, "--manifest-path", manifest]
            subprocess.run([cargo() or "cargo", *words], env=environment(target), check=False, capture_output=True, timeout=CLEAN_SECONDS)
        try:
            yield found
        finally:
            stamp.write_text(wanted)


def sources(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.relative_to(folder).parts[0] != "target"):
        found.update(f"{path.relative_to(folder)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:16]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    deadline = time.monotonic() + WAIT_SECONDS
    with open(path, "w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"another builds in {path.parent}, and does not end") from None
                time.sleep(POLL_SECONDS)
            else:
                break
        yield


@functools.cache
def _compiler() -> bytes:
    found = cargo()
    assert found is not None, "needs cargo 1.85 or later"
    env = {**os.environ, "PATH": f"{found.parent}:{os.environ['PATH']}"}

    def says(program: Path, *words: str) -> bytes:
        return subprocess.run([program, *words], env=env, capture_output=True, check=True, timeout=60).stdout

    return says(found, "--version") + says(found.with_name("rustc"), "-vV")


def main(kind: str, manifest: str, *command: str) -> int:
    path = Path(manifest).resolve()
    target = workshop(kind, path)
    with held(target, path):
        return subprocess.run(command, env=environment(target)).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
