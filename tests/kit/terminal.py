"""The command line as a process of its own: behind pipes, or on a pseudo-terminal."""

from __future__ import annotations

import asyncio
import io
import os
import re
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pexpect

COMMAND = [sys.executable, "-m", "everforge"]
PATIENCE_SECONDS = 90  # of a test on a computer with much else to do


def environment(url: str, token: str, home: Path, **more: str) -> dict[str, str]:
    """Of a person who has nothing but this server."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    folders = {"HOME": home, "XDG_STATE_HOME": home / "state", "XDG_CONFIG_HOME": home / "config", "EVERFORGE_DATA": home / "data"}
    return {
        **kept,
        **{name: str(folder) for name, folder in folders.items()},
        "EVERFORGE_URL": url,
        "EVERFORGE_TOKEN": token,
        "TERM": "xterm",
        "PROMPT_TOOLKIT_NO_CPR": "1",
        **more,
    }


async def start(env: Mapping[str, str], *words: str) -> Process:
    return await asyncio.create_subprocess_exec(*COMMAND, *words, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=dict(env))


async def run(env: Mapping[str, str], *words: str, stdin: str = "") -> tuple[int | None, str, str]:
    """Exit code, stdout, stderr."""
    process = await start(env, *words)
    async with asyncio.timeout(PATIENCE_SECONDS):
        out, err = await process.communicate(stdin.encode())
    return process.returncode, out.decode(), err.decode()


class Terminal:
    """A person at a terminal. What is expected is plain text; colours and movements are left out before it is compared."""

    def __init__(self, env: Mapping[str, str], *words: str, command: Sequence[str]) -> None:
        self.child = pexpect.spawn(
            command[0],
            [*command[1:], *words],
            env=dict(env),
            timeout=PATIENCE_SECONDS,
            encoding="utf-8",
            codec_errors="replace",
            dimensions=(40, 120),
        )  # pyright: ignore[reportArgumentType] - it takes any mapping

        self.child.logfile_read = self._all = io.StringIO()

    @property
    def shown(self) -> str:
        """All of it until now, colours and movements included."""
        return self._all.getvalue()

    async def sees(self, *texts: str) -> str:
        """One after another. Everything up to there."""
        seen = ""
        for text in texts:
            await self._expect(_between_escapes(text), text)
            seen += (self.child.before or "") + str(self.child.after)
        return plain(seen)

    async def _expect(self, pattern: str, what: str) -> None:
        try:
            await asyncio.to_thread(self.child.expect, pattern)
        except pexpect.ExceptionPexpect as e:
            raise AssertionError(f"{what!r} did not come; the terminal showed: {plain(self._all.getvalue())[-3000:]}") from e

    async def prompted(self) -> str:
        """A new prompt, that takes keys. Everything up to there."""
        await self._expect("\x1b\\[\\?2004h.*?>>>", "a prompt")
        return plain((self.child.before or "") + str(self.child.after))

    def types(self, text: str) -> None:
        self.child.send(text)

    async def ends(self) -> int | None:
        await asyncio.to_thread(self.child.expect, pexpect.EOF)
        await asyncio.to_thread(self.child.close)
        return self.child.exitstatus


@contextmanager
def terminal(env: Mapping[str, str], *words: str, command: Sequence[str] = COMMAND) -> Generator[Terminal]:
    """`command` is the command line of another language."""
    made = Terminal(env, *words, command=command)
    try:
        yield made
    finally:
        made.child.close(force=True)


ESCAPE = r"(?:\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>])"


def plain(text: str) -> str:
    return re.sub(ESCAPE, "", text)


def _between_escapes(text: str) -> str:
    return f"{ESCAPE}*".join(re.escape(character) for character in text)
