"""The interpreter child: takes instructions from the agent and runs them in IPython's shell. Everything here is within the user's reach."""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import threading
from json.encoder import encode_basestring_ascii
from typing import Any

from ..wire.bodies import is_too_heavy
from . import channel as wire
from . import entropy, keyboard, results, ring, surroundings
from .channel import ORDERS_SIGNAL, ChildEnd, Frame
from .completion import Completion, complete
from .execution import Execution
from .hostfunctions import HostFunctions
from .limits import GuestLimits
from .results import Rendered
from .shell import make_shell
from .signals import SignalGuard
from .streams import OutStream, Spool, order_descriptor_writes

LONG_US = 10_000

_exit = os._exit


class Interpreter:
    def __init__(self, fd: int, ring_fd: int, stdout_fd: int, stderr_fd: int) -> None:
        for kept in (fd, stdout_fd, stderr_fd):
            os.set_inheritable(kept, False)
        self.channel = ChildEnd(fd)
        self._number: int | None = None
        self._pipes = (stdout_fd, stderr_fd)
        self._descriptors = select.poll()
        for number in (1, 2):
            self._descriptors.register(number, 0)
        self.spool = Spool(self.channel, ring.Writer(ring_fd), self._pipes, self._origin)
        os.close(ring_fd)
        self.streams = (OutStream(self.spool, 0), OutStream(self.spool, 1))
        self.guard = SignalGuard()
        self.limits = GuestLimits()

    def prepare(self) -> None:
        sys.stdout, sys.stderr = self.streams
        sys.__stdout__, sys.__stderr__ = self.streams  # pyright: ignore[reportAttributeAccessIssue]
        keyboard.install()
        order_descriptor_writes(self.spool)
        self._mark_threads()
        self.guard.install()
        self.guard.install_own(ORDERS_SIGNAL, self._obey_in_between)
        self.shell = make_shell(self._display)
        self.execution = Execution(self.shell)
        self.functions = HostFunctions(self.spool, self.channel, self.guard, self.obey)
        self.execution.waited_seconds = self.functions.waited_seconds
        self._attempt(-1, "1+1")  # the first run of everything is slower than the second
        self.execution.tidy(-1)
        self.execution.forget_values()
        sys.argv = [""]
        sys.path.insert(0, "")  # modules in the working folder, now that ours are loaded

    # --- orders --------------------------------------------------------------------------------------------------------------------

    def serve(self) -> None:
        self.channel.send(wire.READY, b"")
        while True:
            try:
                frame = self.channel.receive()
                if frame is None:
                    _exit(0)
                self.obey(frame)
            except wire.ChannelLost:
                _exit(wire.EXIT_CHANNEL_LOST)
            except BaseException as e:
                print(f"between instructions: {type(e).__name__}: {e}", file=self.streams[1])

    def obey(self, frame: Frame) -> None:
        if frame.kind == wire.RUN:
            head, _, code = frame.body.partition(b"\n")
            if head.isdigit():  # nearly always
                self.run(int(head), code.decode())
            else:
                self._run_with(json.loads(head), code.decode())
        elif frame.kind == wire.SETUP:
            self._set_up(json.loads(frame.body))
        elif frame.kind == wire.ENTROPY:
            failed = entropy.reseed(frame.body)
            self.channel.send(wire.RESEEDED, ", ".join(failed).encode())
        elif frame.kind == wire.COMPLETE:
            self._complete(json.loads(frame.body))
        elif frame.kind == wire.ANSWER:
            self.functions.answer(**json.loads(frame.body))

    def _obey_in_between(self) -> None:
        """In the middle of an instruction the agent gives no orders but entropy, and says so by a signal (and answers, to a listener)."""
        self.guard.held = True  # a frame is read whole
        try:
            while self._number is not None and (frame := self.functions.receive_aside()) is not None:
                if frame.kind != wire.RUN:
                    self.obey(frame)
        finally:
            self.guard.release()

    def _set_up(self, order: dict[str, Any]) -> None:
        os.environ.update(order["env"])
        self.limits = self.limits.changed(order["limits"])
        self.limits.apply()
        self.execution.result_bytes_max = self.limits.result_bytes_max

    def _complete(self, order: dict[str, Any]) -> None:
        """Objects may answer questions about themselves with code of their own: an interrupt ends that as it ends an instruction."""
        found = Completion([], 0, 0)
        try:
            try:
                self.guard.armed = True
                found = complete(self.shell, order["code"], order["cursor"])
            finally:
                self.guard.armed = False
        except BaseException:
            self.guard.armed = False
        told = {"token": order["token"], "matches": found.matches, "start": found.start, "end": found.end}
        self.channel.send(wire.COMPLETED, json.dumps(told).encode("ascii"))

    # --- an instruction ------------------------------------------------------------------------------------------------------------

    def run(self, number: int, code: str) -> None:
        self._number = number
        body = self._attempt(number, code)
        if not self.channel.ours:
            _leave_fork()
        self.functions.close()
        self._number = None
        self.spool.send(wire.END, body)  # the agent empties the pipes before it tells this
        # What the next instruction needs is done while the agent passes the end on.
        self._restore_streams()
        self.execution.tidy(number)
        if self.execution.runtime_us > LONG_US:
            with contextlib.suppress(OSError):  # no descriptor to look with: then the limit stays as it is
                self.limits.fit_address_space()  # it may have loaded libraries

    def _run_with(self, order: dict[str, Any], code: str) -> None:
        number = order["instruction"]
        namespace: dict[str, Any] = self.execution.shell.user_ns
        with surroundings.environment(order["env"]), self.functions.given(number, order["functions"], namespace):
            self.run(number, code)

    def _attempt(self, number: int, code: str) -> bytes:
        """The instruction's end, encoded."""
        try:
            try:
                self.guard.interrupted = False
                self.guard.armed = True
                rendered = self.execution.run(number, code)
            finally:
                self.guard.armed = False
            return self._succeeded(number, rendered)
        except BaseException as e:
            self.guard.armed = False
            return self._failed(number, e)

    def _succeeded(self, number: int, rendered: Rendered) -> bytes:
        told = f'{{"instruction":{number},"end":"value","runtime_us":{self.execution.runtime_us}'
        if rendered.value is not None:
            told += f',"value":{encode_basestring_ascii(rendered.value)}'
        if rendered.data is not None:
            data = json.dumps(rendered.data)
            if is_too_heavy(data.encode("ascii")):
                notes = [rendered.note, f"rich data of {len(data)} bytes was left out: it has too many values"]
                rendered = rendered._replace(note="; ".join(filter(None, notes)))
            else:
                told += f',"data":{data}'
        if rendered.note is not None:
            told += f',"note":{encode_basestring_ascii(rendered.note)}'
        return (told + "}").encode("ascii")

    def _failed(self, number: int, error: BaseException) -> bytes:
        if not self.channel.ours:
            _leave_fork(error)
        failure = results.describe(error)
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, results.user_part(results.traceback_of(error))
        if sys.version_info >= (3, 12):
            sys.last_exc = error
        end = "interrupted" if self.guard.interrupted or issubclass(type(error), KeyboardInterrupt) else "error"
        told: dict[str, Any] = {"instruction": number, "end": end, "runtime_us": self.execution.runtime_us}
        told |= {"error_name": failure.name, "error_message": failure.message, "traceback": failure.traceback}
        if self.execution.rendering:
            told["note"] = "the code ran to its end; it is the repr() of its value that failed"
        return json.dumps(told, separators=(",", ":")).encode("ascii")

    def _restore_streams(self) -> None:
        """A closed stdout is nobody's wish for the next instruction; a replaced one is the user's own."""
        for index, name in enumerate(("stdout", "stderr")):
            ours = self.streams[index]
            ours.reopen()
            found = getattr(sys, name)
            if found is not ours and getattr(found, "closed", False):
                setattr(sys, name, ours)
        for fd, events in self._descriptors.poll(0):
            if events & select.POLLNVAL:  # closed
                os.dup2(self._pipes[fd - 1], fd)

    # --- displays and threads ------------------------------------------------------------------------------------------------------

    def _display(self, data: dict[str, Any], metadata: dict[str, Any]) -> None:
        if self.spool.forked:
            print(data.get("text/plain", ""))
            return
        told = {"instruction": self._number, "data": results.plain_data(data), "metadata": results.plain_data(metadata)}
        body = json.dumps(told, separators=(",", ":")).encode("ascii")
        if is_too_heavy(body):
            print(f"a display of {len(body)} bytes was left out: it has too many values", file=sys.stderr)
            return
        if len(body) > self.limits.display_bytes_max:
            print(f"a display of {len(body)} bytes was left out: over the limit of {self.limits.display_bytes_max}", file=sys.stderr)
            return
        self.spool.drain_pipes()
        self.spool.send(wire.DISPLAY, body)

    def _origin(self) -> int:
        """The instruction that started the thread which writes now."""
        thread = threading._active.get(threading.get_ident())  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]
        return getattr(thread, "_origin", wire.NO_ORIGIN)  # pyright: ignore[reportUnknownArgumentType]

    def _mark_threads(self) -> None:
        start = threading.Thread.start
        interpreter = self

        def marked_start(thread: threading.Thread) -> None:
            origin = interpreter._origin()
            if origin == wire.NO_ORIGIN and interpreter._number is not None:
                origin = interpreter._number
            thread._origin = origin  # pyright: ignore[reportAttributeAccessIssue]
            start(thread)

        marked_start.__name__ = start.__name__
        threading.Thread.start = marked_start  # pyright: ignore[reportAttributeAccessIssue]


def _leave_fork(error: BaseException | None = None) -> None:
    """A process that the user forked has run out of its instruction: it ends as a script would, and says nothing to the agent."""
    code: object = 0
    if isinstance(error, SystemExit):
        code = error.code
    elif error is not None:
        print(results.describe(error).traceback, file=sys.stderr)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    _exit(code if isinstance(code, int) else int(code is not None))


def main(fd: int, ring_fd: int, stdout_fd: int, stderr_fd: int) -> None:
    sys.path.pop(0)  # our own folder, which the command put there
    interpreter = Interpreter(fd, ring_fd, stdout_fd, stderr_fd)
    interpreter.prepare()
    interpreter.serve()
