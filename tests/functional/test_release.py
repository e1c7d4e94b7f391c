"""What is published: the packages of three languages as `make dist` builds them have what they need, one version, and nothing that only lay about."""

from __future__ import annotations

import email
import json
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from everforge import __version__
from kit.cargo import needs_cargo
from kit.tools import tool

REPO = Path(__file__).parents[2]
BUILD_SECONDS = 600
INSTALL_SECONDS = 1500  # the crate and all that it needs is built, the first time
workshops = tool("workshops")
LICENSE, README = "LICENSE", "README.md"
STRAY = ("test", "tests", "node_modules", "target", "__pycache__", ".venv", "examples", "fixtures")  # parts of paths that no package has
pytestmark = pytest.mark.timeout(BUILD_SECONDS + 60)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run([REPO / "tools" / "make_dist", folder], capture_output=True, text=True, timeout=BUILD_SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


class Tarball:
    """Paths without the folder that everything lies in."""

    def __init__(self, path: Path) -> None:
        with tarfile.open(path) as opened:
            parts = {member.name.partition("/")[2]: opened.extractfile(member) for member in opened if member.isfile()}
            self.files = {name: file.read() for name, file in parts.items() if file}
            self.strange = [member.name for member in opened if not (member.isfile() or member.isdir())]


def stray(names: list[str]) -> list[str]:
    return [name for name in names if {*name.split("/")} & {*STRAY} or name.endswith((".pyc", ".orig.rs", ".map", ".log"))]


def test_the_wheel_has_the_whole_program_its_data_and_its_licence(dist: Path) -> None:
    with zipfile.ZipFile(dist / f"everforge-{__version__}-py3-none-any.whl") as wheel:
        names = wheel.namelist()
        about = f"everforge-{__version__}.dist-info"
        metadata = email.message_from_bytes(wheel.read(f"{about}/METADATA"))
        assert wheel.read(f"{about}/licenses/{LICENSE}") == (REPO / LICENSE).read_bytes()
        assert "everforge = everforge.cli:main" in wheel.read(f"{about}/entry_points.txt").decode()
    assert (metadata["Name"], metadata["Version"], metadata["License-Expression"]) == ("everforge", __version__, "MIT")
    assert str(metadata.get_payload()).startswith("# Everforge")
    sources = {str(path.relative_to(REPO / "src")) for path in (REPO / "src" / "everforge").rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert {name for name in names if not name.startswith(about)} == sources
    assert {"everforge/mcp/server.py", "everforge/cli/help.txt", "everforge/py.typed"} <= {*names}
    assert stray(names) == []


def test_a_wheel_can_be_built_from_the_sources_that_are_published_and_they_are_no_more_than_that(dist: Path) -> None:
    """`make dist` built it from them."""
    sources = Tarball(dist / f"everforge-{__version__}.tar.gz")
    assert {name.split("/")[0] for name in sources.files} == {"src", README, LICENSE, "CHANGELOG.md", "pyproject.toml", "PKG-INFO", ".gitignore"}
    assert (stray([*sources.files]), sources.strange) == ([], [])


def test_the_npm_package_has_what_it_names_with_types_and_nothing_else(dist: Path) -> None:
    package = Tarball(dist / f"everforge-{__version__}.tgz")
    manifest = json.loads(package.files["package.json"])
    assert (manifest["name"], manifest["version"], manifest["license"]) == ("everforge", __version__, "MIT")
    assert package.files[LICENSE] == (REPO / LICENSE).read_bytes()
    assert README in package.files
    places = [manifest["main"], manifest["types"], *manifest["bin"].values()]
    for export in manifest["exports"].values():
        places += [export] if isinstance(export, str) else export.values()
    assert [place for place in places if place.removeprefix("./") not in package.files] == []
    assert {name.split("/")[0] for name in package.files} == {"dist", README, LICENSE, "package.json"}
    scripts = {name.removesuffix(".js") for name in package.files if name.endswith(".js")}
    assert {name.removesuffix(".d.ts") for name in package.files if name.endswith(".d.ts")} == scripts
    assert f'"{__version__}"'.encode() in package.files["dist/generated/version.js"]
    assert package.files["dist/cli/main.js"].startswith(b"#!/usr/bin/env node\n")
    assert (stray([*package.files]), package.strange) == ([], [])


@needs_cargo
def test_the_crate_has_library_and_command_line_and_no_tests(dist: Path) -> None:
    crate = Tarball(dist / f"everforge-{__version__}.crate")
    manifest = tomllib.loads(crate.files["Cargo.toml"].decode())
    about = manifest["package"]
    assert (about["name"], about["version"], about["license"], about["readme"]) == ("everforge", __version__, "MIT", README)
    assert crate.files[LICENSE] == (REPO / LICENSE).read_bytes()
    sources = {str(path.relative_to(REPO / "sdk" / "rust")) for path in (REPO / "sdk" / "rust" / "src").rglob("*") if path.is_file()}
    assert {name for name in crate.files if name.startswith("src/")} == sources
    assert {"src/lib.rs", "src/bin/everforge/main.rs"} <= sources
    made = {"Cargo.toml", "Cargo.toml.orig", "Cargo.lock", ".cargo_vcs_info.json"}
    assert {name for name in crate.files if not name.startswith("src/")} - made == {README, LICENSE}
    assert (stray([*crate.files]), crate.strange) == ([], [])


@pytest.mark.gvisor
@pytest.mark.slow
@pytest.mark.timeout(INSTALL_SECONDS + 60)
def test_each_package_is_installed_in_an_empty_folder_and_runs_an_example_there(dist: Path) -> None:
    done = subprocess.run([sys.executable, REPO / "tools" / "release_check.py", dist], capture_output=True, text=True, timeout=INSTALL_SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    packages = "every package" if workshops.cargo() else "every package but the crate"
    assert done.stdout.splitlines()[-1] == f"release-check: {packages} of {__version__} works from an empty folder"
