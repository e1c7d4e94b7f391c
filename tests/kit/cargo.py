"""Rust packages, built for tests by the cargo that setup took, each once: what is built is kept outside the clone (tools/workshops.py).

shop = workshop(MANIFEST)                             # MANIFEST: a Cargo.toml with its Cargo.lock beside it
shop.cargo("test", "--locked", manifest=MANIFEST)     # any command of cargo's, built into the workshop
shop.program("everything", MANIFEST)                  # a program of the package, by its path
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from kit.tools import tool

_workshops = tool("workshops")
BUILD_SECONDS = 2400  # two and a half minutes on an idle computer of two cores
PROGRAMS_MAX = 6  # of other sources; some fifty megabytes each
needs_cargo = pytest.mark.skipif(_workshops.cargo() is None, reason="needs cargo 1.85 or later, which tools/setup --tests installs")


@dataclass(frozen=True)
class Workshop:
    """A target folder. Tests, and clones, may use it at once: they wait for each other."""

    target: Path

    def cargo(self, *words: str, manifest: Path, seconds: float = BUILD_SECONDS, after: tuple[str, ...] = (), **env: str) -> str:
        """What it says on stdout. `after` is for the program that it runs."""
        with _workshops.held(self.target, manifest):
            return self._run(words, manifest, seconds, after, env)

    def program(self, name: str, manifest: Path, kind: str = "bin") -> Path:
        """Built where it is not yet, and kept where no other clone builds. A package may name a compiler that is newer than it needs, so what it names
        is not asked."""
        with _workshops.held(self.target, manifest) as sources:
            kept = self.target / "programs" / f"{sources}-{name}"
            if not kept.exists():
                words = ("build", "--locked", "--ignore-rust-version", "--message-format=json", f"--{kind}", name)
                messages = [json.loads(line) for line in self._run(words, manifest).splitlines()]
                [found] = [
                    m["executable"] for m in messages if m["reason"] == "compiler-artifact" and m["executable"] and m["target"]["name"] == name
                ]
                self._keep(Path(found), kept)
            os.utime(kept)
        return kept

    def unpacked(self, name: str, version: str, manifest: Path) -> Path:
        """The manifest of a published package on which this one depends, as cargo unpacked it and compared it with the checksum in the lock."""
        found = json.loads(self._run(("metadata", "--locked", "--format-version", "1"), manifest))
        [package] = [p for p in found["packages"] if (p["name"], p["version"]) == (name, version)]
        return Path(package["manifest_path"])

    def _run(
        self, words: tuple[str, ...], manifest: Path, seconds: float = BUILD_SECONDS, after: tuple[str, ...] = (), env: dict[str, str] | None = None
    ) -> str:
        command = [str(_workshops.cargo()), *words, "--manifest-path", str(manifest), *(("--", *after) if after else ())]
        around: dict[str, str] = _workshops.environment(self.target) | (env or {})
        done = subprocess.run(command, env=around, capture_output=True, text=True, timeout=seconds)
        assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def _keep(self, built: Path, kept: Path) -> None:
        kept.parent.mkdir(exist_ok=True)
        for old in sorted(kept.parent.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)[PROGRAMS_MAX:]:
            old.unlink()
        whole = kept.with_name(f".{kept.name}")
        shutil.copy2(built, whole)
        whole.rename(kept)


def workshop(manifest: Path) -> Workshop:
    return Workshop(_workshops.workshop("tests", manifest))
