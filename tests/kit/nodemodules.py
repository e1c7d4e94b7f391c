"""Packages of Node.js for tests: what setup has installed, by the same means (tools/node_modules.py), outside of the clone."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_SOURCE = Path(__file__).parents[2] / "tools" / "node_modules.py"
_spec = importlib.util.spec_from_file_location("node_modules", _SOURCE)
assert _spec is not None
assert _spec.loader is not None
_tool = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_tool)


def node() -> Path:
    """The node that setup takes; npm lies beside it."""
    found = _tool.node()
    assert found is not None, "needs node 20 or later, which comes with the Python packages"
    return found


def environment() -> dict[str, str]:
    return _tool.environment(node())


def install(folder: Path) -> Path:
    """The folder node_modules of what the lock in `folder` names."""
    return _tool.install(folder)


def drop_unused(folder: Path) -> None:
    _tool.drop_unused(folder)
