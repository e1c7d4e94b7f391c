"""How long tests go on that could go on forever: for seconds as a rule, for as long as it takes to believe them with EVERFORGE_TEST_LONG=1."""

from __future__ import annotations

import os
from typing import TypeVar

LONG = bool(os.environ.get("EVERFORGE_TEST_LONG"))
TIMEOUT_FACTOR = 20 if LONG else 1  # of whole tests
T = TypeVar("T", int, float)


def length(usual: T, long: T) -> T:
    return long if LONG else usual
