"""Functions of the client's program, as code in the machine calls them: the arguments go out as JSON, and whoever called waits for the answer.

While any thread waits, a listener hears the agent in the place of the main one.
"""

from __future__ import annotations

import _thread
import json
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..wire.bodies import parse
from ..wire.messages import CALL_BYTES_MAX, CALLS_MAX, CALLS_OPEN_MAX, CALLS_TOTAL_BYTES_MAX
from . import channel
from .channel import ChildEnd, Frame
from .listener import Listener
from .streams import Spool

HEAD_BYTES = 64  # of a message: its two numbers


class HostFunctionError(Exception):
    """A function of the client's program failed; the message says how."""


HostFunctionError.__module__ = "builtins"  # there is no module of the user's that it could be imported from


class _Wait:
    """One thread, until its answer is there."""

    def __init__(self) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        self._lock = _thread.allocate_lock()
        self._lock.acquire()

    def end(self, value: Any, error: BaseException | None) -> None:
        self.value, self.error = value, error
        self._lock.release()

    def wait(self) -> Any:
        self._lock.acquire()
        if self.error is not None:
            raise self.error
        return self.value


class HostFunction:
    def __init__(self, functions: HostFunctions, name: str) -> None:
        self._functions = functions
        self.__name__ = self.__qualname__ = name

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._functions.call(self.__name__, args, kwargs)

    def __repr__(self) -> str:
        return f"<function {self.__name__} of the client's program>"


class HostFunctions:
    def __init__(self, spool: Spool, end: ChildEnd, hear: Callable[[Frame], None]) -> None:
        """`hear` is told what else the agent says while somebody waits."""
        self._spool = spool
        self._listener = Listener(end, hear, lambda: bool(self._waits))
        self._instruction: int | None = None
        self._next = 0
        self._told_bytes = 0
        self._waits: dict[int, _Wait] = {}
        self._beginning = threading.RLock()  # numbers go out in their order
        self._waited = 0.0
        self._since = 0.0

    @contextmanager
    def given(self, instruction: int, names: Sequence[str], namespace: dict[str, Any]) -> Generator[None]:
        """There for this instruction alone. What the code puts in their place stays; what they were put in the place of comes back."""
        ours: dict[str, Any] = {name: HostFunction(self, name) for name in names}
        if names:
            ours.setdefault("HostFunctionError", HostFunctionError)
        before = {name: namespace[name] for name in ours if name in namespace}
        namespace.update(ours)
        self._instruction, self._next, self._told_bytes, self._waited = instruction, 0, 0, 0.0
        try:
            yield
        finally:
            self.close()
            _put_back(namespace, ours, before)

    @property
    def listening(self) -> bool:
        """The channel is read here."""
        return self._listener.alive

    def waited_seconds(self) -> float:
        """In which at least one call of this instruction waited."""
        return self._waited + (time.perf_counter() - self._since if self._waits else 0.0)

    def call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if self._spool.forked:
            raise RuntimeError(f"{name}() belongs to the client's program, and cannot be called from another process than the machine's interpreter")
        told = _encode(name, args, kwargs)
        wait, number, instruction = _Wait(), -1, self._instruction
        try:
            with self._beginning:
                number = self._begin(name, wait, len(told))
                instruction = self._instruction
                self._listener.begin()
                self._spool.drain_pipes()
                self._spool.send(channel.CALL, f'{{"instruction":{instruction},"call":{number},{told}}}'.encode())
            return wait.wait()
        except BaseException:
            if self._end(number) is not None:  # interrupted: whoever would answer is told that nobody waits
                self._spool.send(channel.CALL_DROPPED, f'{{"instruction":{instruction},"call":{number}}}'.encode())
            raise

    def _begin(self, name: str, wait: _Wait, size_bytes: int) -> int:
        if self._instruction is None:
            raise RuntimeError(f"{name}() can be called only while the instruction that it was given to runs")
        if self._next >= CALLS_MAX:
            raise RuntimeError(f"one instruction may call functions of the client's program {CALLS_MAX} times")
        if len(self._waits) >= CALLS_OPEN_MAX:
            raise RuntimeError(f"{CALLS_OPEN_MAX} calls of functions of the client's program wait already")
        told_bytes = self._told_bytes + size_bytes + HEAD_BYTES
        if told_bytes > CALLS_TOTAL_BYTES_MAX:
            raise RuntimeError(f"the arguments of one instruction's calls may take {CALLS_TOTAL_BYTES_MAX} bytes in all: write long data to files")
        self._told_bytes = told_bytes
        number, self._next = self._next, self._next + 1
        if not self._waits:
            self._since = time.perf_counter()
        self._waits[number] = wait
        return number

    def answer(self, call: int, value: Any, error: str | None) -> None:
        wait = self._end(call)
        if wait is not None:
            wait.end(value, None if error is None else HostFunctionError(error))

    def _end(self, number: int) -> _Wait | None:
        waited = self.waited_seconds()
        wait = self._waits.pop(number, None)
        if wait is not None and not self._waits:
            self._waited = waited
        return wait

    def close(self) -> None:
        """Before the end of the instruction is told: then the agent may say what is for the main thread alone. Threads that still wait hear it."""
        if self._instruction is None:
            return
        with self._beginning:
            self._instruction = None
        self._listener.end()
        for number in list(self._waits):
            wait = self._end(number)
            if wait is not None:
                wait.end(None, RuntimeError("the instruction has ended, and the client's program no longer answers"))
        self._waited = 0.0


def _encode(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The part of the message that is the caller's."""
    try:
        told = f'"args":{json.dumps(list(args), allow_nan=False)},"kwargs":{json.dumps(dict(kwargs), allow_nan=False)}'
        if len(told) <= CALL_BYTES_MAX:
            parse(f"{{{told}}}".encode("ascii"))  # as whoever reads it will
    except (TypeError, ValueError, RecursionError) as e:
        raise TypeError(f"{name}() takes what JSON can say: {e}") from None
    if len(told) > CALL_BYTES_MAX:
        raise ValueError(f"the arguments of {name}() take {len(told)} bytes as JSON, and may take {CALL_BYTES_MAX}: write long data to a file")
    return f'"function":{json.dumps(name)},{told}'


def _put_back(namespace: dict[str, Any], ours: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    for name, function in ours.items():
        if namespace.get(name) is function:
            if name in before:
                namespace[name] = before[name]
            else:
                del namespace[name]
