"""What an instruction finds around it, and nobody after it: environment variables of its own."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager

_environ = os.environ  # a user may put something else in its place


@contextmanager
def environment(extra: Mapping[str, str]) -> Generator[None]:
    """These variables as well, also for what is started meanwhile. Afterwards they are as they were before, whatever was made of them."""
    before = {name: _environ.get(name) for name in extra}
    try:
        _environ.update(extra)
        yield
    finally:
        for name, value in before.items():
            if value is None:
                _environ.pop(name, None)
            else:
                _environ[name] = value
