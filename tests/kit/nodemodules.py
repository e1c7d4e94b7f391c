"""Packages of Node.js for tests: what setup has installed, by the same means (tools/node_modules.py), outside of the clone."""

from __future__ import annotations

from pathlib import Path

from kit.tools import tool

_tool = tool("node_modules")


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
