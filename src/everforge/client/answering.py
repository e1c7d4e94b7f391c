"""Which machines wait for a function of this program that runs right now. Whoever waited for one of them in there would wait for ever. No I/O."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from everforge.wire.errors import WrongState
from everforge.wire.sentences import say

Place = tuple[str, str]  # a server and the name of a machine
_answered: ContextVar[Mapping[Place, int] | None] = ContextVar("everforge_answered", default=None)


@contextmanager
def answering(base_url: str, machine: str, instruction: int) -> Generator[None]:
    """In this block an answer is found for an instruction that waits for it. What the block starts knows of it, too."""
    before = _answered.get()
    token = _answered.set({**(before or {}), (base_url, machine): instruction})
    try:
        yield
    finally:
        _answered.reset(token)


def check_wait(base_url: str, machine: str, instruction: int | None = None) -> None:
    """WrongState when it, or a new one, could only end after the answer that is being found here. Earlier ones have ended."""
    waits = (_answered.get() or {}).get((base_url, machine))
    if waits is not None and (instruction is None or instruction >= waits):
        raise WrongState(say("waits_for_answer", number=waits, machine=machine))
