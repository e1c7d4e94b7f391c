"""Functions of the client's program, as code in the machine calls them: the arguments go out as JSON, and whoever called waits for the answer.

While any thread waits, a listener hears the agent in the place of the main one. A handler of the user's may raise into the wait and nowhere else: a
call has begun or it has not, and one that was given up is told as such.
"""

from __future__ import annotations

import _thread
import asyncio
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..wire.bodies import parse
from ..wire.messages import CALL_BYTES_MAX, CALLS_MAX, CALLS_OPEN_MAX, CALLS_TOTAL_BYTES_MAX
from . import channel
from .alone import Alone
from .channel import ChildEnd, Frame
from .listener import Listener
from .signals import SignalGuard
from .streams import Spool
from .waits import Wait, Waits

HEAD_BYTES = 64  # of a message: its two numbers


class HostFunctionError(Exception):
    """A function of the client's program failed; the message says how."""


HostFunctionError.__module__ = "builtins"  # there is no module of the user's that it could be imported from


class HostFunction:
    """Belongs to one instruction: code that keeps it for another is told so."""

    def __init__(self, functions: HostFunctions, instruction: int, name: str) -> None:
        self._functions = functions
        self._instruction = instruction
        self.__name__ = self.__qualname__ = name

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._functions.call(self._instruction, self.__name__, args, kwargs)

    def __repr__(self) -> str:
        return f"<function {self.__name__} of the client's program>"


class _NoSignals:
    """In place of the guard in other threads than the main one, which signals do not reach."""

    held = False

    def release(self) -> None:
        pass


class HostFunctions:
    def __init__(self, spool: Spool, end: ChildEnd, guard: SignalGuard, hear: Callable[[Frame], None]) -> None:
        """`hear` is told what else the agent says while somebody waits."""
        self._spool = spool
        self._guard = guard
        self._waits = Waits()
        self._listener = Listener(end, hear, lambda: len(self._waits) > 0)
        self._main = _thread.get_ident()
        self._instruction: int | None = None
        self._next = 0
        self._told_bytes = 0
        self._beginning = Alone()  # numbers go out in their order
        self._main_waits = 0  # more than one where a handler calls, too
        guard.handled = self._follow_task

    @contextmanager
    def given(self, instruction: int, names: Sequence[str], namespace: dict[str, Any]) -> Generator[None]:
        """There for this instruction alone. What the code puts in their place stays; what they were put in the place of comes back."""
        ours: dict[str, Any] = {name: HostFunction(self, instruction, name) for name in names}
        if names:
            ours.setdefault("HostFunctionError", HostFunctionError)
        before = {name: namespace[name] for name in ours if name in namespace}
        namespace.update(ours)
        self._instruction, self._next, self._told_bytes = instruction, 0, 0
        self._waits.begin_anew()
        try:
            yield
        finally:
            self.close()
            _put_back(namespace, ours, before)

    def waited_seconds(self) -> float:
        """In which at least one call of this instruction waited."""
        return self._waits.seconds

    # --- calls -------------------------------------------------------------------------------------------------------------------------

    def call(self, instruction: int, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if self._spool.forked:
            raise RuntimeError(f"{name}() belongs to the client's program, and cannot be called from another process than the machine's interpreter")
        told, wait = _encode(name, args, kwargs), Wait(instruction)
        signals = self._guard if _thread.get_ident() == self._main else _NoSignals()
        try:
            signals.held = True
            self._begin(wait, name, told)
            signals.release()
            return self._wait(wait)
        except BaseException:
            signals.held = True  # at once: Python looks for signals after calls and jumps, and there is none between the raise and this
            self._give_up(wait)
            raise
        finally:
            signals.release()

    def _begin(self, wait: Wait, name: str, told: str) -> None:
        with self._beginning:
            self._check(wait.instruction, name, told)
            wait.number, self._next = self._next, self._next + 1
            self._told_bytes += len(told) + HEAD_BYTES
            self._waits.add(wait)
            self._listener.begin()
            self._spool.drain_pipes()
            wait.told = True
            self._spool.send(channel.CALL, f'{{"instruction":{wait.instruction},"call":{wait.number},{told}}}'.encode("ascii"))

    def _check(self, instruction: int, name: str, told: str) -> None:
        if self._instruction != instruction:
            raise RuntimeError(f"{name}() can be called only while the instruction that it was given to runs")
        if self._listener.is_this_thread:
            raise RuntimeError(f"{name}() cannot be called from a destructor")
        if self._next >= CALLS_MAX:
            raise RuntimeError(f"one instruction may call functions of the client's program {CALLS_MAX} times")
        if len(self._waits) >= CALLS_OPEN_MAX:
            raise RuntimeError(f"{CALLS_OPEN_MAX} calls of functions of the client's program wait already")
        if self._told_bytes + len(told) + HEAD_BYTES > CALLS_TOTAL_BYTES_MAX:
            raise RuntimeError(f"the arguments of one instruction's calls may take {CALLS_TOTAL_BYTES_MAX} bytes in all: write long data to files")

    def _wait(self, wait: Wait) -> Any:
        if _thread.get_ident() != self._main:
            return wait.wait()
        self._main_waits += 1
        try:
            return wait.wait()
        finally:
            self._main_waits -= 1

    def _follow_task(self) -> None:
        """An interrupt in asyncio.run cancels its task, which could not see that while it waits here."""
        if self._main_waits:
            try:
                task = asyncio.current_task()
            except RuntimeError:  # no loop runs
                return
            if task is not None and task.cancelling():
                raise asyncio.CancelledError

    def _give_up(self, wait: Wait) -> None:
        """Whoever would answer is told that nobody waits, unless it is answered or the instruction is over."""
        if self._waits.take(wait.number) is not None and wait.told:
            self._spool.send(channel.CALL_DROPPED, f'{{"instruction":{wait.instruction},"call":{wait.number}}}'.encode("ascii"))

    # --- what the agent says -----------------------------------------------------------------------------------------------------------

    def answer(self, call: int, value: Any, error: str | None) -> None:
        wait = self._waits.take(call)
        if wait is not None:
            wait.end(value, None if error is None else HostFunctionError(error))

    def receive_aside(self) -> Frame | None:
        """For the main thread in the middle of an instruction, with signals held: what the agent has said, unless the listener hears that."""
        return self._listener.receive_aside()

    # --- the end -----------------------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Before the end of the instruction is told: then the agent may say what is for the main thread alone. Threads that still wait hear it."""
        if self._instruction is None:
            return
        self._guard.held = True
        try:
            with self._beginning:
                self._instruction = None
            self._listener.end()
            for wait in self._waits.take_all():
                wait.end(None, RuntimeError("the instruction has ended, and the client's program no longer answers"))
        finally:
            self._guard.release()


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
