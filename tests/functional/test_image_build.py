"""Real images: the same lock gives the same digest anywhere, and what is in one works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import everforge
from everforge.folders import cache_folder
from everforge.images.build import ensure
from everforge.images.catalogue import Catalogue, CataloguedImage
from everforge.images.command import run_inside
from everforge.progress import Silent

ORDINARY_UID = 12345
PYTHON = "/usr/bin/python3"
PROGRAM = """
import os
from pathlib import Path
from everforge.images.build import ensure
from everforge.images.catalogue import Catalogue
from everforge.progress import Silent
os.umask(0o077)
print(ensure('minimal', Catalogue(Path('images').absolute(), Path('cache').absolute()), Silent()).base)
"""


@pytest.fixture(scope="module")
def minimal() -> CataloguedImage:
    return ensure("minimal", Catalogue.here(), Silent())


@pytest.fixture(scope="module")
def default() -> CataloguedImage:
    return ensure("default", Catalogue.here(), Silent())


@pytest.mark.slow
def test_building_again_elsewhere_gives_the_same_digest(minimal: CataloguedImage, tmp_path: Path) -> None:
    elsewhere = Catalogue(tmp_path, cache_folder())
    again = ensure("minimal", elsewhere, Silent())
    assert again.base == minimal.base
    assert again.digest == minimal.digest
    elsewhere.scrub(again.digest)


@pytest.mark.slow
@pytest.mark.root
def test_an_ordinary_user_builds_the_same_image(minimal: CataloguedImage) -> None:
    old = subprocess.run([PYTHON, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], check=False).returncode
    assert not old, f"{PYTHON} must be 3.11 or newer: ours may be out of another user's reach"
    folder = Path(f"/tmp/everforge-ordinary-{os.getpid()}")
    folder.mkdir(mode=0o755)
    try:
        (folder / "bin").mkdir()
        shutil.copy(Path(sys.executable).with_name("uv"), folder / "bin/uv")
        shutil.copytree(Path(everforge.__file__).parent, folder / "src/everforge", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(cache_folder() / "debs", folder / "cache/debs")
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, ORDINARY_UID, ORDINARY_UID)
        env = {
            **os.environ,
            "PATH": f"{folder}/bin:/usr/bin:/bin",
            "HOME": str(folder),
            "PYTHONPATH": str(folder / "src"),
            "XDG_CACHE_HOME": str(folder),
        }
        argv = ["setpriv", f"--reuid={ORDINARY_UID}", f"--regid={ORDINARY_UID}", "--clear-groups", PYTHON, "-c", PROGRAM]
        done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=250)
        assert (done.returncode, done.stdout.strip()) == (0, minimal.base), done.stderr
    finally:
        shutil.rmtree(folder)


def test_a_second_look_for_a_built_image_costs_nothing() -> None:
    class Refusing(Silent):
        def step(self, text: str) -> None:
            raise AssertionError(f"nothing was to be done, but: {text}")

    image = ensure("minimal", Catalogue.here(), Silent())
    assert ensure("minimal", Catalogue.here(), Refusing()) == image


@pytest.mark.parametrize("recipe", ["minimal", "default"])
def test_an_image_has_its_user_its_folders_and_no_way_to_other_rights(recipe: str, request: pytest.FixtureRequest) -> None:
    root: Path = request.getfixturevalue(recipe).root
    passwd = (root / "etc/passwd").read_text()
    assert passwd.splitlines()[0].startswith("root:x:0:0:")
    assert "user:x:1000:1000:user:/home/user:/bin/bash\n" in passwd
    for shared in ("tmp", "var/tmp", "home"):
        assert (root / shared).stat().st_mode & 0o7777 == 0o1777
        assert list((root / shared).iterdir()) == []
    for empty in ("dev", "proc", "sys"):
        assert list((root / empty).iterdir()) == []
    assert not (root / "etc/resolv.conf").exists()
    assert not [path for path in root.rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o6000]
    assert list((root / "usr/lib/everforge/_everforge/wire/__pycache__").glob("frames.*.pyc"))


def test_the_default_image_holds_what_it_promises(default: CataloguedImage) -> None:
    modules = "IPython, numpy, pandas, matplotlib.pyplot, requests, scipy.stats, PIL.Image, openpyxl, lxml.html, plotly.express, ssl, pip"
    # -B, for a test must not write into an image. The font list is there: matplotlib would otherwise say that it makes one.
    program = f"import {modules}; import sys; print(sys.version_info[:2], requests.certs.where() != '', ssl.get_default_verify_paths().cafile)"
    told = run_inside(default.root, ["/usr/bin/python3", "-B", "-W", "error::UserWarning", "-c", program], "try the image", env=default.env)
    assert told == "(3, 13) True /usr/lib/ssl/cert.pem\n"
    tools = "awk bash bzip2 curl diff file find git grep gzip jq less make nano patch pip ps python rg sed sqlite3 tar tree unzip wget which xz zip"
    # No redirection: the image has no devices, and a file would be made in its place.
    shell = f'for tool in {tools} editor pager; do [ -n "$(type -P $tool)" ] || echo $tool; done'
    assert run_inside(default.root, ["/bin/bash", "-c", shell], "try the image", env=default.env) == ""
    Catalogue.here().check(default)


def test_commands_of_python_packages_name_the_images_python(minimal: CataloguedImage) -> None:
    scripts = sorted((minimal.root / "usr/local/bin").iterdir())
    assert {"ipython", "pip", "pip3.13"} <= {script.name for script in scripts}
    assert {script.read_text().splitlines()[0] for script in scripts} == {"#!/usr/bin/python3"}
