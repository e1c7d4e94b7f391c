"""Rust packages, built for tests by the cargo that setup took, each once: what is built is kept outside the clone.

shop = workshop(MANIFEST)                             # MANIFEST: a Cargo.toml with its Cargo.lock beside it
shop.cargo("test", "--locked", manifest=MANIFEST)     # any command of cargo's, built into the workshop
shop.binary("everything", MANIFEST)                   # a program of the package, by its path
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from everforge.folders import cache_folder

CARGO = subprocess.run([Path(__file__).parents[2] / "tools" / "find_cargo"], capture_output=True, text=True).stdout.strip()
BUILD_SECONDS = 2400  # two and a half minutes on an idle computer of two cores
UNUSED_SECONDS_MAX = 30 * 86_400  # half a gigabyte each: of compilers and locks that nobody has any more
needs_cargo = pytest.mark.skipif(not CARGO, reason="needs cargo 1.85 or later, which tools/setup --tests installs")


@dataclass(frozen=True)
class Workshop:
    """A target folder, which cargo itself locks: tests, and clones, may use it at once."""

    target: Path

    def cargo(self, *words: str, manifest: Path, seconds: float = BUILD_SECONDS, after: tuple[str, ...] = (), **env: str) -> str:
        """What it says on stdout. `after` is for the program that it runs."""
        command = [CARGO, *words, "--manifest-path", str(manifest), *(("--", *after) if after else ())]
        done = subprocess.run(command, env={**_environment(), **self._settings(), **env}, capture_output=True, text=True, timeout=seconds)
        assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def binary(self, name: str, manifest: Path) -> Path:
        """Built where it is not yet. A package may name a compiler that is newer than it needs, so what it names is not asked."""
        told = self.cargo("build", "--locked", "--ignore-rust-version", "--message-format=json", "--bin", name, manifest=manifest)
        messages = [json.loads(line) for line in told.splitlines()]
        [found] = [m["executable"] for m in messages if m["reason"] == "compiler-artifact" and m["executable"] and m["target"]["name"] == name]
        return Path(found)

    def unpacked(self, name: str, version: str, manifest: Path) -> Path:
        """The manifest of a published package on which this one depends, as cargo unpacked it and compared it with the checksum in the lock."""
        found = json.loads(self.cargo("metadata", "--locked", "--format-version", "1", manifest=manifest))
        [package] = [p for p in found["packages"] if (p["name"], p["version"]) == (name, version)]
        return Path(package["manifest_path"])

    def _settings(self) -> dict[str, str]:
        """Quick to build, and small: nobody debugs what is built here, or builds it a second time with little changed."""
        small = {"CARGO_INCREMENTAL": "0", "CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_PROFILE_TEST_DEBUG": "0"}
        return {"CARGO_TARGET_DIR": str(self.target), **small}


def workshop(manifest: Path) -> Workshop:
    """For a package and what it depends on: by its lock and the compiler, so that clones share it and an update begins anew.

    Of the sources the name says nothing: cargo sees by itself what of them has changed, and what they depend on is far more.
    """
    mark = hashlib.sha256(_compiler() + manifest.with_name("Cargo.lock").read_bytes()).hexdigest()[:16]
    target = cache_folder() / "rust-tests" / mark
    target.mkdir(parents=True, exist_ok=True)
    os.utime(target)
    drop_unused(target.parent)
    return Workshop(target)


def drop_unused(targets: Path) -> None:
    for target in targets.iterdir():
        if time.time() - target.stat().st_mtime > UNUSED_SECONDS_MAX:
            shutil.rmtree(target, ignore_errors=True)


@functools.cache
def _compiler() -> bytes:
    def says(program: str, *words: str) -> bytes:
        return subprocess.run([program, *words], env=_environment(), capture_output=True, check=True, timeout=60).stdout

    return says(CARGO, "--version") + says(str(Path(CARGO).with_name("rustc")), "-vV")


def _environment() -> dict[str, str]:
    """That cargo's folder first: it takes its rustc from PATH."""
    return {**os.environ, "PATH": f"{Path(CARGO).parent}:{os.environ['PATH']}"}
