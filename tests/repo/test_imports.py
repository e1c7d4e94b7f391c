"""Who may import whom is said in lists, and a list is easily forgotten when a package is added: none of ours may be missing from one that means all."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOT_PACKAGES = {"__init__", "__main__"}

# The contracts that mean everything of ours: which of their lists does, and who is rightly not in it.
ALL_BUT: dict[str, tuple[str, set[str]]] = {
    "wire imports nothing of ours": ("forbidden_modules", {"wire"}),
    "guest knows only wire": ("forbidden_modules", {"guest", "wire"}),
    "nobody on the host runs the guest's code": ("source_modules", {"guest", "wire"}),
    "nobody but the command line and the way in for AI tools is a client of ours": ("source_modules", {"cli", "client", "mcp"}),
    "the command line reaches machines only as a client": (
        "forbidden_modules",
        {"cli", "client", "clocks", "engine", "folders", "images", "mcp", "programs", "progress", "signals", "windows", "wire"},
    ),
    "the SDK knows the wire and where things lie, and no more": ("forbidden_modules", {"client", "folders", "wire"}),
    "the warden is standard library only": ("forbidden_modules", {"wire"}),
    "server stands on machines, machines on engine and store, which do not know each other": ("layers", {"client", "guest"}),
}


def ours() -> set[str]:
    found = {path.stem for path in (ROOT / "src/everforge").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    return found - NOT_PACKAGES


def contract(name: str) -> dict[str, Any]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (found,) = [c for c in contracts if c["name"] == name]
    return found


@pytest.mark.parametrize("name", ALL_BUT)
def test_every_package_of_ours_is_in_the_list_of(name: str) -> None:
    key, left_out = ALL_BUT[name]
    modules = [module.strip() for entry in contract(name)[key] for module in entry.split("|")]
    listed = {module.split(".")[1] for module in modules if module.startswith("everforge.")}
    assert listed == ours() - left_out
