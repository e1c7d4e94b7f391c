"""Our own SDKs in other languages, built for tests: each once, and kept outside the clone by what it is built from."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from everforge.folders import cache_folder
from kit.cargo import workshop
from kit.nodemodules import drop_unused, environment, install, node

REPO = Path(__file__).parents[2]
TYPESCRIPT, RUST = REPO / "sdk" / "typescript", REPO / "sdk" / "rust" / "Cargo.toml"
BUILD_SECONDS = 600
MADE = ("node_modules", "dist", "dist-test")


@dataclass(frozen=True)
class TypeScript:
    node: Path
    folder: Path  # built

    @property
    def command(self) -> Path:
        return self.folder / "dist" / "cli" / "main.js"

    @property
    def scenario(self) -> Path:
        return self.folder / "dist-test" / "test" / "scenario.js"

    @property
    def browser_bundle(self) -> Path:
        return self.folder / "dist-test" / "browser.js"


@functools.cache
def typescript_sdk() -> TypeScript:
    packages = install(TYPESCRIPT)
    sources = sorted(path for path in TYPESCRIPT.rglob("*") if path.is_file() and path.relative_to(TYPESCRIPT).parts[0] not in MADE)
    mark = hashlib.sha256(str(packages).encode())
    for path in sources:
        mark.update(b"\0" + str(path.relative_to(TYPESCRIPT)).encode() + b"\0" + path.read_bytes())
    kept = cache_folder() / "typescript-sdk" / mark.hexdigest()[:16]
    if not kept.exists():
        _build(kept, packages)
    os.utime(kept)
    drop_unused(kept.parent)
    return TypeScript(node(), kept)


def _build(kept: Path, packages: Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=kept.parent) as name:
        made = Path(name) / "made"
        shutil.copytree(TYPESCRIPT, made, ignore=lambda folder, names: [n for n in names if n in MADE and Path(folder) == TYPESCRIPT])
        (made / "node_modules").symlink_to(packages)
        for script in ("build", "test:build"):
            command = [node().parent / "npm", "run", "--silent", script]
            done = subprocess.run(command, cwd=made, env=environment(), capture_output=True, text=True, timeout=BUILD_SECONDS)
            assert done.returncode == 0, f"npm run {script}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        if not kept.exists():
            made.rename(kept)


def rust_binary() -> Path:
    """The command line."""
    return workshop(RUST).program("everforge", RUST)


def rust_example(name: str) -> Path:
    return workshop(RUST).program(name, RUST, kind="example")
