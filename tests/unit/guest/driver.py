"""The keeper's side of the link, driven by hand: spawns a guest agent as an ordinary process and talks to it over two pipes."""

from __future__ import annotations

import os
import secrets
import select
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import everforge
from everforge.wire import frames
from everforge.wire.messages import Ack, Attach, Display, End, GuestMessage, Hello, Outputs, Run, decode_from_guest, encode

ROOT = Path(everforge.__file__).parents[1]
PROGRAM = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from everforge.guest.agent import main; main()"
WAIT_SECONDS = 20.0


def until_there(file: Path) -> str:
    """Code that goes on once this file is there: what a test sees before it makes it, it has seen in time, however slow the computer is."""
    return f"import os, time\nwhile not os.path.exists({str(file)!r}): time.sleep(0.01)\n"


M = TypeVar("M", bound=GuestMessage)


@dataclass
class Done:
    """An instruction, from its first output to its end."""

    end: End
    said: list[GuestMessage] = field(default_factory=list[GuestMessage])

    @property
    def outputs(self) -> list[Outputs]:
        return [m for m in self.said if isinstance(m, Outputs)]

    @property
    def displays(self) -> list[Display]:
        return [m for m in self.said if isinstance(m, Display)]

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Stream and line, in order, with pieces of one line put together again."""
        found: list[tuple[str, str]] = []
        open_line: dict[str, bool] = {}
        for output in self.outputs:
            for i, line in enumerate(output.lines):
                if open_line.get(output.stream) and found and found[-1][0] == output.stream:
                    found[-1] = (output.stream, found[-1][1] + line)
                else:
                    found.append((output.stream, line))
                open_line[output.stream] = output.partial and i == len(output.lines) - 1
        return found

    @property
    def stdout(self) -> list[str]:
        return [line for stream, line in self.lines if stream == "stdout"]

    @property
    def stderr(self) -> list[str]:
        return [line for stream, line in self.lines if stream == "stderr"]


class Link:
    """Two descriptors: records to the guest go into `to_guest`, those from it come out of `from_guest`."""

    def __init__(self, to_guest: int, from_guest: int) -> None:
        self.to_guest = to_guest
        self.from_guest = from_guest
        self.epoch = 0
        self.sent = 0
        self.heard: list[GuestMessage] = []
        self.auto_ack = True
        self._decoder = frames.Decoder(frames.GUEST_RECORD_BYTES_MAX)
        self._assembler = frames.Assembler()

    def attach(self, epoch: int = 1, have: int | None = None) -> Hello:
        """A hello, or an AssertionError after WAIT_SECONDS."""
        nonce = secrets.token_bytes(frames.NONCE_BYTES)
        if have is None:
            have = 0 if epoch > self.epoch else self._assembler.last
        self._decoder = frames.Decoder(frames.GUEST_RECORD_BYTES_MAX, nonce)
        self._assembler = frames.Assembler(0 if epoch > self.epoch else have)
        self.send(Attach(nonce.hex(), epoch, have))
        hello = self.wait_for(Hello)
        self.sent = 0 if epoch > hello.epoch else hello.received
        self.epoch = epoch
        return hello

    def send(self, message: GuestMessage) -> None:
        first = 0 if message.control else self.sent + 1
        for record in frames.split(message.kind, encode(message), first, frames.RECORD_BYTES_MAX):
            data = frames.encode_record(record)
            while data:
                data = data[os.write(self.to_guest, data) :]
            self.sent = max(self.sent, record.number)

    def ack(self) -> None:
        self.send(Ack(self._assembler.last))

    def pump(self, seconds: float) -> bool:
        """Reads once, if anything comes within `seconds`; False when nothing came or the guest is gone."""
        if not select.select([self.from_guest], [], [], max(0.0, seconds))[0]:
            return False
        data = os.read(self.from_guest, 1 << 20)
        if not data:
            raise EOFError("the guest is gone")
        numbered = False
        for record in self._decoder.feed(data):
            numbered = numbered or record.number > 0
            message = self._assembler.add(record)
            if message is not None:
                self.heard.append(decode_from_guest(message.kind, message.body))
        if numbered and self.auto_ack:
            self.ack()
        return True

    def wait_for(self, kind: type[M], where: Callable[[M], bool] = lambda _: True, seconds: float = WAIT_SECONDS) -> M:
        """The first message of this kind; it is taken out, and so is nothing else."""
        deadline = time.monotonic() + seconds
        looked = 0
        while True:
            for i in range(looked, len(self.heard)):
                found = self.heard[i]
                if isinstance(found, kind) and where(found):
                    del self.heard[i]
                    return found
            looked = len(self.heard)
            if not self.pump(deadline - time.monotonic()) and time.monotonic() >= deadline:
                raise AssertionError(f"no {kind.__name__} came within {seconds} s; heard {self.heard[-5:]}")


class Guest(Link):
    """A guest agent as a process of its own, with the given folder as the user's home."""

    def __init__(self, home: Path, argv: list[str] | None = None) -> None:
        their_in, our_out = os.pipe()
        our_in, their_out = os.pipe()
        env = {"HOME": str(home), "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8"}
        command = argv or [sys.executable, "-I", "-S", "-c", PROGRAM]
        self.process = subprocess.Popen(command, stdin=their_in, stdout=their_out, env=env, cwd="/")
        os.close(their_in)
        os.close(their_out)
        super().__init__(our_out, our_in)
        self._next = 0

    def begin(self, code: str, instruction: int | None = None) -> int:
        number = self._next if instruction is None else instruction
        self._next = number + 1
        self.send(Run(number, code))
        return number

    def finish(self, number: int, seconds: float = WAIT_SECONDS) -> Done:
        """The instruction's end with everything said before it (what background threads said between instructions too)."""
        end = self.wait_for(End, lambda e: e.instruction == number, seconds)
        said, self.heard = self.heard, []
        return Done(end, said)

    def run(self, code: str, seconds: float = WAIT_SECONDS) -> Done:
        return self.finish(self.begin(code), seconds)

    def value(self, code: str) -> str | None:
        done = self.run(code)
        assert done.end.end == "value", done.end
        return done.end.value

    def close(self) -> int:
        """Hangs up, and gives the agent's exit code."""
        for fd in (self.to_guest, self.from_guest):
            try:
                os.close(fd)
            except OSError:
                pass
        try:
            return self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
