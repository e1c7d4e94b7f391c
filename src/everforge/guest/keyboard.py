"""There is no keyboard: whatever waits for one is told so at once, instead of hanging until the deadline."""

from __future__ import annotations

import builtins
import getpass
import io
import sys
from typing import Any

ADVICE = "a machine has no keyboard; put the value in the code instead"


def refuse_input(prompt: object = "", /) -> str:
    raise RuntimeError(f"input() is not available: {ADVICE}")


def refuse_getpass(prompt: str = "Password: ", stream: Any = None, **_options: Any) -> str:
    raise RuntimeError(f"getpass() is not available: {ADVICE}")


class NoKeyboard(io.TextIOBase):
    name = "<stdin>"

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "utf-8"

    def readable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return 0

    def close(self) -> None:
        """Stays open: `exit()` closes standard input, and the machine lives on."""

    def __del__(self) -> None:
        pass

    def read(self, size: int | None = -1, /) -> str:
        raise EOFError(f"standard input is empty: {ADVICE}")

    def readline(self, size: int = -1, /) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.read()

    def readlines(self, hint: int = -1, /) -> list[str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return [self.read()]

    def __next__(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.read()


def install() -> None:
    builtins.input = refuse_input
    getpass.getpass = refuse_getpass
    sys.stdin = sys.__stdin__ = NoKeyboard()  # pyright: ignore[reportAttributeAccessIssue]
