"""Read by every Python of a machine as it starts: libraries that would not find the way out by themselves are told of it when they are imported.

That is aiohttp alone, which looks at `http_proxy` only where a session is told to; here it does so unless a session is told not to. Until somebody
imports it this costs one comparison of names for each import. Nothing of ours is imported here: users' programs run it.
"""

from __future__ import annotations

import os
import sys
from typing import Any

WAITED_FOR = "aiohttp.client"


class Waiting:
    """A finder that finds nothing, but sees who is looked for."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != WAITED_FOR or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)  # pyright: ignore[reportArgumentType]
        from importlib.util import find_spec

        spec: Any = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = _then_tell(spec.loader.exec_module)
        return spec


def _then_tell(exec_module: Any) -> Any:
    def both(module: Any) -> None:
        exec_module(module)
        defaults = getattr(getattr(getattr(module, "ClientSession", None), "__init__", None), "__kwdefaults__", None)
        if isinstance(defaults, dict) and "trust_env" in defaults:
            defaults["trust_env"] = True

    return both


def begin() -> None:
    if os.environ.get("http_proxy"):
        sys.meta_path.insert(0, Waiting())  # pyright: ignore[reportArgumentType]
