"""The programs in tools/, as modules: what tests need of them they take from there."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

REPO = Path(__file__).parents[2]


def tool(name: str) -> Any:
    """The module tools/NAME.py, loaded once."""
    known = f"everforge_tools_{name}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, REPO / "tools" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[known] = module
    return sys.modules[known]
