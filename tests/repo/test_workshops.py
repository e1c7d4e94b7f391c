"""What is built outside the clone, for all clones: nobody gets what another's sources made."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kit.cargo import Workshop, needs_cargo
from kit.tools import tool

LOCK = 'version = 4\n\n[[package]]\nname = "greeter"\nversion = "0.1.0"\n'
LONG_AGO = 1_000_000_000


def clone(folder: Path, says: str) -> Path:
    """A package whose files are older than anything that was built of it, as those of a clone may be."""
    (folder / "src").mkdir(parents=True)
    (folder / "Cargo.toml").write_text('[package]\nname = "greeter"\nversion = "0.1.0"\nedition = "2021"\n')
    (folder / "Cargo.lock").write_text(LOCK)
    (folder / "src" / "main.rs").write_text(f'fn main() {{ print!("{says}") }}\n')
    for path in folder.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))
    return folder / "Cargo.toml"


@needs_cargo
@pytest.mark.timeout(300)
def test_two_clones_share_a_workshop_and_each_gets_what_its_own_sources_make(tmp_path: Path) -> None:
    shop = Workshop(tmp_path / "target")
    shop.target.mkdir()
    clones = {says: clone(tmp_path / says, says) for says in ("one", "other")}
    for says in ("one", "other", "one"):
        assert subprocess.run([shop.program("greeter", clones[says])], capture_output=True, text=True).stdout == says
        assert shop.cargo("run", "--quiet", manifest=clones[says]) == says


def test_what_was_built_for_compilers_and_locks_that_nobody_uses_any_more_goes(tmp_path: Path) -> None:
    packages = tool("node_modules")
    for name, unused_seconds in (("used", packages.UNUSED_SECONDS_MAX - 3600), ("unused", packages.UNUSED_SECONDS_MAX + 3600)):
        (tmp_path / name / "debug").mkdir(parents=True)
        then = (tmp_path / name).stat().st_mtime - unused_seconds
        os.utime(tmp_path / name, (then, then))
    packages.drop_unused(tmp_path)
    assert [kept.name for kept in tmp_path.iterdir()] == ["used"]
