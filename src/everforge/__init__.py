"""Python machines that never forget, on hardware you own.

The public names of the Python SDK. They are found when they are first asked for, so that `import everforge` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .client._async.client import AsyncEverforge as AsyncEverforge
    from .client._async.instruction import AsyncInstruction as AsyncInstruction
    from .client._async.machine import AsyncMachine as AsyncMachine
    from .client._async.repl import AsyncRepl as AsyncRepl
    from .client._sync.client import Everforge as Everforge
    from .client._sync.instruction import Instruction as Instruction
    from .client._sync.machine import Machine as Machine
    from .client._sync.repl import Repl as Repl
    from .client.results import Display as Display
    from .client.results import Line as Line
    from .client.results import Result as Result
    from .wire import errors as errors
    from .wire.errors import EverforgeError as EverforgeError

_PLACES = {
    "AsyncEverforge": "client._async.client", "AsyncInstruction": "client._async.instruction", "AsyncMachine": "client._async.machine",
    "AsyncRepl": "client._async.repl", "Everforge": "client._sync.client", "Instruction": "client._sync.instruction",
    "Machine": "client._sync.machine", "Repl": "client._sync.repl", "Display": "client.results", "Line": "client.results",
    "Result": "client.results", "EverforgeError": "wire.errors",
}  # fmt: skip
__all__ = [
    "AsyncEverforge", "AsyncInstruction", "AsyncMachine", "AsyncRepl", "Display", "Everforge", "EverforgeError", "Instruction", "Line", "Machine",
    "Repl", "Result", "__version__", "errors",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "errors":
        return importlib.import_module("everforge.wire.errors")
    if name not in _PLACES:
        raise AttributeError(f"module 'everforge' has no attribute {name!r}")
    return getattr(importlib.import_module(f"everforge.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
