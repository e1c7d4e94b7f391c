"""aiohttp finds the way out though it would not look for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import everforge.guest.proxies

CLIENT = "class ClientSession:\n    def __init__(self, base=None, *, trust_env: bool = False, other=1): self.trust_env = trust_env\n"
COUNT = "sum(type(finder).__name__ == 'Waiting' for finder in sys.meta_path)"
HOOK = f"import runpy; runpy.run_path({everforge.guest.proxies.__file__!r})['begin']()\n"


def told(folder: Path, code: str, **env: str) -> str:
    package = folder / "aiohttp"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").write_text("from .client import ClientSession\n")
    (package / "client.py").write_text(CLIENT)
    command = [sys.executable, "-c", HOOK + code]
    bare = {name: value for name, value in os.environ.items() if name.lower() != "http_proxy"}
    return subprocess.run(command, env={**bare, "PYTHONPATH": str(folder), **env}, capture_output=True, text=True, check=True).stdout.strip()


def test_sessions_look_for_a_proxy_unless_they_are_told_not_to(tmp_path: Path) -> None:
    code = "import aiohttp; print(aiohttp.ClientSession().trust_env, aiohttp.ClientSession(trust_env=False).trust_env)"
    assert told(tmp_path, code, http_proxy="http://127.0.0.1:3128") == "True False"


def test_without_a_proxy_nothing_is_changed(tmp_path: Path) -> None:
    assert told(tmp_path, "import aiohttp, sys; print(aiohttp.ClientSession().trust_env, " + COUNT + ")") == "False 0"


def test_it_goes_away_once_it_has_done_its_work_and_minds_no_other_import(tmp_path: Path) -> None:
    code = f"import sys, json; before = {COUNT}; import aiohttp.client as c; print(before, {COUNT}, c.__spec__.name)"
    assert told(tmp_path, code, http_proxy="x") == "1 0 aiohttp.client"


def test_an_aiohttp_that_is_not_there_is_not_there(tmp_path: Path) -> None:
    code = "import shutil, sys\nsys.path[:] = [p for p in sys.path if 'site-packages' not in p][1:]\ntry: import aiohttp.client\nexcept ImportError as e: print(e.name)"
    assert told(tmp_path, code, http_proxy="x", PYTHONPATH="") == "aiohttp"
