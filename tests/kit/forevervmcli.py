"""ForeverVM's command line as published, built from its crate, and a person at a terminal who uses it."""

from __future__ import annotations

import io
import json
import os
import re
import signal
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pexpect

from kit.cargo import workshop
from kit.terminal import plain

CRATES = Path(__file__).parents[1] / "rust" / "Cargo.toml"  # names the published crates, and its lock their checksums
VERSION = "0.1.35"
PATIENCE_SECONDS = 60


def command_line() -> Path:
    """Built with the lock that it was published with, as `cargo install --locked` does."""
    shop = workshop(CRATES)
    return shop.program("forevervm", shop.unpacked("forevervm", VERSION, CRATES))


class Screen:
    """A command on a pseudo-terminal. What is compared is plain text: colours and movements are left out."""

    def __init__(self, command: Path, words: tuple[str, ...], env: dict[str, str]) -> None:
        options: Any = {"env": env, "timeout": PATIENCE_SECONDS, "encoding": "utf-8", "codec_errors": "replace", "dimensions": (40, 120)}
        self.child = pexpect.spawn(str(command), list(words), preexec_fn=_heeding_ctrl_c, **options)
        self.child.delaybeforesend = None  # type: ignore[assignment] # every wait here is for something
        self.child.logfile_read = self._all = io.StringIO()

    def sees(self, pattern: str) -> None:
        try:
            self.child.expect(pattern)
        except pexpect.ExceptionPexpect as e:
            raise AssertionError(f"{pattern!r} did not come; the terminal showed: {self.shown[-3000:]}") from e

    @property
    def shown(self) -> str:
        return _text(self._all.getvalue())

    def types(self, text: str) -> None:
        self.child.send(text)

    def types_hidden(self, text: str) -> None:
        """Once what is typed is not shown any more: a person takes longer than that, a test does not."""
        assert self.child.waitnoecho(PATIENCE_SECONDS), "what is typed would be shown"
        self.types(f"{text}\r")

    def prompted(self) -> str:
        """When the prompt takes keys. What was shown since the last one, without what was typed there."""
        self.sees(r"\x1b\[\?2004h.*?>>> ")
        return _text((self.child.before or "").rpartition("\x1b[?2004l")[2]).removeprefix("\n")

    def runs(self, code: str) -> str:
        """What comes of it."""
        self.types(f"{code}\r")
        return self.prompted()

    def ends(self) -> int:
        """Its exit code, or minus the signal that ended it."""
        try:
            self.child.expect(pexpect.EOF)
        except pexpect.ExceptionPexpect as e:
            raise AssertionError(f"it did not end; the terminal showed: {self.shown[-3000:]}") from e
        self.child.close()
        return -self.child.signalstatus if self.child.signalstatus is not None else (self.child.exitstatus or 0)


@dataclass(frozen=True)
class Person:
    """Who has the command line, a home, and nothing else."""

    command: Path
    home: Path

    @property
    def config(self) -> Path:
        return self.home / ".config" / "forevervm" / "config.json"

    def configured(self, url: str, token: str) -> None:
        """As if logged in."""
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(json.dumps({"token": token, "server_url": url}))

    @contextmanager
    def at(self, *words: str) -> Generator[Screen]:
        env = {"HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / ".config"), "PATH": os.environ["PATH"], "TERM": "xterm", "LANG": "C.UTF-8"}
        screen = Screen(self.command, words, env)
        try:
            yield screen
        finally:
            screen.child.close(force=True)

    def says(self, *words: str) -> tuple[int, str]:
        """A command that asks nothing: its exit code, and what it showed."""
        with self.at(*words) as screen:
            return screen.ends(), screen.shown

    def logs_in(self, url: str, token: str) -> tuple[int, str]:
        with self.at("login", "--api-base-url", url) as screen:
            screen.sees("Enter your token")
            screen.types_hidden(token)
            return screen.ends(), screen.shown


def _heeding_ctrl_c() -> None:
    """As from a shell that a person types into: what is started in the background ignores it, tests and whatever they start among it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def name_in(text: str) -> str:
    """Of the machine that was made, or connected to."""
    found = re.search(r"(?:Created machine|Connected to) (\S+)", text)
    assert found, text
    return found[1]


def _text(shown: str) -> str:
    return plain(shown).replace("\r", "")
