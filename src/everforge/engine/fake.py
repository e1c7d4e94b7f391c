"""An engine for tests: milliseconds, no root, no isolation whatever. Passes the same suite as the real ones.

`FakeHost` is the computer: it and its sandboxes outlive a `FakeEngine`, as a warden's outlive a server. The guest in a fake sandbox speaks the
real protocol but executes a test's code right here, in this process; a few words stand for what cannot happen here: `hang()`, `endure()` (also when
it is interrupted), `sleep(s)`, `die()`, `crash()`, `exhaust()`, and for what print cannot say: `tell(*lines, stream=, partial=)`, `show(data)`. Code
that calls a function of the client's program goes on with the statement that called it, which is run again from its beginning.
"""

from __future__ import annotations

import ast
import asyncio
import io
import pickle
import random
import string
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from everforge.wire import frames
from everforge.wire.errors import DiskFull, ProtocolError, SandboxLost, SaveFailed, WakeFailed
from everforge.wire.ids import SandboxId, new_sandbox_id
from everforge.wire.messages import (
    PROTOCOL,
    Ack,
    Answer,
    Attach,
    Call,
    Complete,
    Completed,
    Display,
    End,
    FileAsk,
    Freeze,
    Frozen,
    Go,
    GuestEnd,
    GuestMessage,
    Hello,
    Interrupt,
    Kill,
    Outputs,
    Run,
    Setup,
    Stream,
    Thawed,
    decode_from_keeper,
    encode,
)

from .base import Ending, How, Image, Limits, Probe, Sandbox
from .fakefiles import FakeFiles

MEMORY_FILE = "pages.img"
STATE_FILE = "checkpoint.img"


PARSE_TRIES = 5


class _Word(BaseException):
    """A word of the fake guest: what happens instead of an end."""


class _Hang(_Word):
    def __init__(self, *, endures: bool = False) -> None:
        self.endures = endures


class _Sleep(_Word):
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class _Die(_Word):
    pass


class _Call(_Word):
    """For an answer that is not there yet."""

    def __init__(self, function: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function = function
        self.args_ = args
        self.kwargs = kwargs


class HostFunctionError(Exception):
    pass


class _Vanish(_Word):
    def __init__(self, how: How) -> None:
        self.how = how


def _raise(word: type[_Word], *args: Any, **how: Any) -> Any:
    def speak(*given: Any) -> None:
        raise word(*args, *given, **how)

    return speak


_WORDS = {
    "hang": _raise(_Hang),
    "endure": _raise(_Hang, endures=True),
    "sleep": _raise(_Sleep),
    "die": _raise(_Die),
    "crash": _raise(_Vanish, How.EXITED),
    "exhaust": _raise(_Vanish, How.OUT_OF_MEMORY),
}


class FakeGuest:
    """The agent and its interpreter, without processes: feed it records, take bytes."""

    def __init__(self) -> None:
        self.protocol = PROTOCOL
        self.epoch = 0
        self.frozen = False
        self.endures = False  # the running instruction, when it is interrupted
        self.running: int | None = None
        self.last: int | None = None
        self.interpreter = 1
        self.variables: dict[str, Any] = {"random": random.Random(), "environ": {}, "limits": {}}
        self.outbox = frames.Outbox(frames.GUEST_RECORD_BYTES_MAX)
        self.inbox = frames.Assembler()
        self.note: str | None = None
        self.disk: bytes | None = None  # its files, as they were saved
        self.environ: dict[str, str | None] = {}  # what variables of the running instruction were before it
        self.functions: list[str] = []  # that the running instruction may call
        self.rest: list[str] = []  # its statements that are still to be run, and
        self.answers: list[tuple[Any, str | None]] = []  # what the first of them has been answered
        self.calls = 0  # of it so far
        self.open: int | None = None  # the one that it waits for

    def take_environ(self, env: Mapping[str, str]) -> None:
        environ = self.variables.setdefault("environ", {})
        self.environ = {name: environ.get(name) for name in env}
        environ.update(env)

    def give_environ_back(self) -> None:
        environ = self.variables.get("environ", {})
        for name, value in self.environ.items():
            environ.pop(name, None)
            if value is not None:
                environ[name] = value

    def state(self) -> dict[str, Any]:
        kept = ("protocol", "epoch", "frozen", "endures", "running", "last", "interpreter", "variables", "note", "disk", "environ")
        kept += ("functions", "rest", "answers", "calls", "open")
        return {**{name: getattr(self, name) for name in kept}, "sent": self.outbox.last, "received": self.inbox.last}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> FakeGuest:
        guest = cls()
        guest.outbox.last, guest.inbox.last = state.pop("sent"), state.pop("received")
        for name, value in state.items():
            setattr(guest, name, value)
        return guest


class FakeSandbox:
    """One fake sandbox on a fake host, its guest, and both ends of its link."""

    def __init__(self, host: FakeHost, guest: FakeGuest, limits: Limits, build: str) -> None:
        self._id = new_sandbox_id()
        self._host = host
        self.build = build
        self.guest = guest
        self.limits = limits
        self.ending: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._decoder = frames.Decoder(frames.RECORD_BYTES_MAX)
        self._pipe = bytearray()
        self._readable = asyncio.Event()
        self._sleeping: asyncio.TimerHandle | None = None
        self._link = FakeLink(self)
        self._files: FakeFiles | None = None
        self._given: Iterator[tuple[Any, str | None]] = iter(())
        host.sandboxes[self._id] = self

    @property
    def id(self) -> SandboxId:
        return self._id

    @property
    def link(self) -> FakeLink:
        return self._link

    def egress(self) -> None:
        return None

    def reconnect(self) -> FakeSandbox:
        """For a new server: a fresh link on the same guest; bytes that the old one left in the pipe are still there."""
        self._link = FakeLink(self)
        self._decoder = frames.Decoder(frames.RECORD_BYTES_MAX)
        return self

    # --- Sandbox -------------------------------------------------------------------------------------------------------------------------

    async def save(self, folder: Path) -> None:
        if self.ending.done():
            raise SandboxLost("the sandbox is gone")
        if self._host.disk_full:
            raise DiskFull("no space left on the device")
        if self._host.failing_saves:
            self._host.failing_saves -= 1
            raise SaveFailed("the fake engine was told to fail this save")
        if self._files is not None:
            self.guest.disk = self._files.save()
        state = self.guest.state()
        memory = pickle.dumps(state.pop("variables"))
        (folder / MEMORY_FILE).write_bytes(memory)
        (folder / STATE_FILE).write_bytes(pickle.dumps(state))

    async def destroy(self) -> None:
        self.end(Ending(How.DESTROYED))

    async def ended(self) -> Ending:
        return await asyncio.shield(self.ending)

    async def memory_bytes(self) -> int:
        return 1_000_000

    def end(self, ending: Ending) -> None:
        self._host.sandboxes.pop(self._id, None)
        if self._files is not None:
            self._files.close()
            self._files = None
        if not self.ending.done():
            self.ending.set_result(ending)
        self._readable.set()

    # --- the link ------------------------------------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        for record in self._decoder.feed(data):
            message = self.guest.inbox.add(record)
            if message is not None and (spoken := decode_from_keeper(message.kind, message.body)) is not None:
                self._hear(spoken)

    async def read(self) -> bytes:
        while not self._pipe:
            if self.ending.done():
                return b""
            self._readable.clear()
            await self._readable.wait()
        data, self._pipe = bytes(self._pipe), bytearray()
        return data

    def _write(self, data: bytes) -> None:
        self._pipe += data
        self._readable.set()

    def _say(self, message: GuestMessage) -> None:
        for data in self.guest.outbox.add(message.kind, encode(message)):
            self._write(data)

    def _complete(self, message: Complete) -> None:
        before = message.code[: message.cursor]
        word = before[len(before.rstrip(string.ascii_letters + string.digits + "_")) :]
        matches = sorted(name for name in self.guest.variables if name.startswith(word))
        told = Completed(message.token, matches, message.cursor - len(word), message.cursor)
        if self.guest.running is not None:
            told = Completed(message.token, busy=True)
        self._say_control(told.kind, encode(told))

    def _clerks(self) -> FakeFiles:
        if self._files is None:
            self._files = FakeFiles(self._say_control, self.guest.disk)
        return self._files

    def _say_control(self, kind: int, body: bytes) -> None:
        (record,) = frames.split(kind, body, 0, frames.GUEST_RECORD_BYTES_MAX)
        self._write(frames.encode_record(record))

    # --- the guest -----------------------------------------------------------------------------------------------------------------------

    def _hear(self, message: GuestMessage) -> None:
        guest = self.guest
        match message:
            case Attach():
                self._attach(message)
            case Ack():
                guest.outbox.acknowledge(message.upto)
            case Setup():
                guest.variables.setdefault("environ", {}).update(message.env)
                guest.variables["limits"] = dict(message.limits)
            case Complete():
                self._complete(message)
            case FileAsk():
                self._clerks().ask(message)
            case Freeze():
                guest.frozen = True
                self._say(Frozen(token=message.token))
            case Go():
                if message.entropy is not None:
                    guest.variables["random"] = random.Random(message.entropy)
                guest.frozen = False
                self._say(Thawed())
            case Run():
                if guest.running is not None and message.instruction > guest.running:
                    raise ProtocolError(f"a keeper waits for the end of {guest.running} before it sends another")
                if guest.last is None or message.instruction > guest.last:
                    guest.running = guest.last = message.instruction
                    guest.take_environ(message.env)
                    guest.functions, guest.calls, guest.answers = list(message.functions), 0, []
                    if message.functions:
                        guest.rest = [ast.unparse(statement) for statement in _parse(message.code).body]
                        self._go_on()
                    else:
                        self._execute(message.code)
            case Answer():
                if (guest.running, guest.open) == (message.instruction, message.call):
                    guest.open = None
                    guest.answers.append((message.value, message.error))
                    self._go_on()
            case Interrupt():
                if guest.running == message.instruction and not guest.endures:
                    self._end("interrupted", error_name="KeyboardInterrupt", error_message="")
            case Kill():
                if guest.running == message.instruction:
                    self._die("killed")
            case _:
                raise ProtocolError(f"a guest is not told {type(message).__name__}")

    def _attach(self, message: Attach) -> None:
        guest = self.guest
        self._write(frames.mark(bytes.fromhex(message.nonce)))
        hello = Hello(
            protocol=guest.protocol,
            epoch=guest.epoch,
            sent=guest.outbox.last,
            received=guest.inbox.last,
            frozen=guest.frozen,
            running=guest.running,
            running_ms=0,
            last=guest.last,
            interpreter=guest.interpreter,
            calls=[] if guest.open is None else [guest.open],
        )
        (record,) = frames.split(Hello.kind, encode(hello), 0, frames.GUEST_RECORD_BYTES_MAX)
        self._write(frames.encode_record(record))
        guest.inbox.forget_partial()
        if message.epoch > guest.epoch:
            guest.epoch, guest.last = message.epoch, guest.running
            guest.outbox, guest.inbox = frames.Outbox(frames.GUEST_RECORD_BYTES_MAX), frames.Assembler()
        else:
            for data in guest.outbox.after(message.have):
                self._write(data)

    def _go_on(self) -> None:
        """With the statements of code that may call functions, one by one, until one has to wait."""
        guest = self.guest
        while guest.running is not None and guest.open is None and guest.rest:
            self._given = iter(guest.answers)
            if not self._execute(guest.rest[0], last=len(guest.rest) == 1):
                return
            guest.rest, guest.answers = guest.rest[1:], []

    def _functions(self) -> dict[str, Any]:
        def function(name: str) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                try:
                    value, error = next(self._given)
                except StopIteration:
                    raise _Call(name, args, kwargs) from None
                if error is not None:
                    raise HostFunctionError(error)
                return value

            return call

        return {name: function(name) for name in self.guest.functions}

    def _call(self, word: _Call) -> None:
        number, self.guest.open = self.guest.calls, self.guest.calls
        self.guest.calls += 1
        assert self.guest.running is not None
        self._say(Call(self.guest.running, number, word.function, list(word.args_), word.kwargs))

    def _execute(self, code: str, *, last: bool = True) -> bool:
        """True when it ran to its end."""
        out = io.StringIO()
        value: Any = None
        try:
            with redirect_stdout(out):
                value = _evaluate(code, self.guest.variables, self._words(out))
        except _Hang as word:
            self.guest.endures = word.endures
            self._print(out)
        except _Sleep as word:
            self._print(out)
            self._sleeping = asyncio.get_running_loop().call_later(word.seconds, self._end, "value")
        except _Die:
            self._print(out)
            self._die("exited with status 1")
        except _Call as word:
            self._print(out)
            self._call(word)
        except _Vanish as word:
            self.end(Ending(word.how))
        except BaseException as e:
            self._print(out)
            self._end("error", error_name=type(e).__name__, error_message=str(e))
        else:
            self._print(out)
            if last:
                self._end("value", value=None if value is None else repr(value))
            return True
        return False

    def _words(self, out: io.StringIO) -> dict[str, Any]:
        """Those that are said on the spot, after what was printed before them."""

        def tell(*lines: str, stream: Stream = "stdout", partial: bool = False) -> None:
            self._print(out)
            self._say(Outputs(instruction=self.guest.running, stream=stream, lines=list(lines), partial=partial))

        def show(data: dict[str, Any]) -> None:
            self._print(out)
            self._say(Display(instruction=self.guest.running, data=data))

        return {"tell": tell, "show": show, "HostFunctionError": HostFunctionError, **self._functions()}

    def _print(self, out: io.StringIO) -> None:
        if printed := out.getvalue():
            out.seek(0)
            out.truncate()
            self._say(Outputs(instruction=self.guest.running, stream="stdout", lines=printed.removesuffix("\n").split("\n")))

    def _end(self, end: GuestEnd, **fields: Any) -> None:
        if self._sleeping is not None:
            self._sleeping.cancel()
            self._sleeping = None
        number, self.guest.running = self.guest.running, None
        assert number is not None
        self.guest.endures, self.guest.open, self.guest.rest, self.guest.functions = False, None, [], []
        self.guest.give_environ_back()
        note, self.guest.note = self.guest.note, None
        self._say(End(instruction=number, end=end, runtime_us=1, note=note, **fields))

    def _die(self, how: str) -> None:
        self._end("died", error_name="InterpreterDied", error_message=how)
        self.guest.variables = {"random": random.Random()}
        self.guest.interpreter += 1
        self.guest.note = "a new interpreter began: variables are gone, files are there"


class FakeLink:
    def __init__(self, sandbox: FakeSandbox) -> None:
        self._sandbox: FakeSandbox | None = sandbox

    async def receive(self) -> bytes:
        return b"" if self._sandbox is None else await self._sandbox.read()

    async def send(self, record: bytes) -> None:
        await asyncio.sleep(0)
        if self._sandbox is None or self._sandbox.ending.done():
            raise SandboxLost("the guest's side of the link is closed")
        self._sandbox.feed(record)

    def close(self) -> None:
        self._sandbox = None


class FakeHost:
    """The computer: what is alive on it, and the faults a test asks for."""

    def __init__(self) -> None:
        self.sandboxes: dict[SandboxId, FakeSandbox] = {}
        self.disk_full = False
        self.failing_saves = 0
        self.failing_restores = 0

    def lose_everything(self) -> None:
        """As when the warden and the server die together."""
        for sandbox in list(self.sandboxes.values()):
            sandbox.end(Ending(How.LOST, "the fake host was told to lose it"))


class FakeEngine:
    name = "fake"

    def __init__(self, host: FakeHost | None = None, build: str = "fake-1", older: Collection[str] = ()) -> None:
        """`older` builds are at hand for what they saved."""
        self.host = host or FakeHost()
        self.build = build
        self._older = frozenset(older)

    async def probe(self, image: Image) -> Probe:
        return Probe(engine=self.name, fit=True, build=self.build, summary="the fake engine isolates nothing", facts={})

    async def start(self, image: Image, limits: Limits) -> Sandbox:
        return FakeSandbox(self.host, FakeGuest(), limits, self.build)

    async def knows(self, build: str) -> bool:
        return build == self.build or build in self._older

    async def restore(self, image: Image, folder: Path, limits: Limits, build: str | None = None) -> Sandbox:
        build = build or self.build
        if not await self.knows(build):
            raise WakeFailed(f"what saved {folder.name} is not at hand")
        if self.host.failing_restores:
            self.host.failing_restores -= 1
            raise WakeFailed("the fake engine was told to fail this restore")
        try:
            state = pickle.loads((folder / STATE_FILE).read_bytes())
            state["variables"] = pickle.loads((folder / MEMORY_FILE).read_bytes())
            guest = FakeGuest.from_state(state)
        except Exception as e:
            raise WakeFailed(f"the saved files in {folder.name} cannot be restored: {e}") from e
        return FakeSandbox(self.host, guest, limits, build)

    async def survivors(self) -> Mapping[SandboxId, Sandbox]:
        return {id: sandbox.reconnect() for id, sandbox in self.host.sandboxes.items()}

    async def close(self) -> None:
        pass


def _parse(code: str) -> ast.Module:
    """Python before 3.11.5 counts its depth for all threads together, and now and then finds that it has lost count."""
    for _ in range(PARSE_TRIES):
        try:
            return ast.parse(code)
        except SystemError:
            continue
    return ast.parse(code)


def _evaluate(code: str, variables: dict[str, Any], words: dict[str, Any]) -> Any:
    """Run it as an interpreter would: the value of a last expression is the result."""
    tree = _parse(code)
    scope = {**_WORDS, **words, "__builtins__": __builtins__, "time": time, **variables}
    known = set(scope) - set(variables)
    try:
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "<instruction>", "exec"), scope)
        return eval(compile(ast.Expression(last.value), "<instruction>", "eval"), scope) if isinstance(last, ast.Expr) else None
    finally:
        variables.update({name: value for name, value in scope.items() if name not in known})
