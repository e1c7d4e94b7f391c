"""Lines of sdk/contract/command_lines.json, and what a command line answers to them.

program = Program(["node", "main.js"])
answer = program.run(line, env, folder)      # Answer(code, out, err)
python_answers([line], env, folder)          # Python's, many in one process: to load it anew for each would take most of the time
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LINES = Path(__file__).parents[2] / "sdk" / "contract" / "command_lines.json"
SECONDS_MAX = 90


@dataclass(frozen=True)
class Line:
    words: tuple[str, ...]
    stdin: bytes = b""

    @classmethod
    def read(cls, found: Any) -> Line:
        """As the shell has it, or word by word; with what comes on standard input."""
        if isinstance(found, str):
            return cls(tuple(shlex.split(found)))
        words = found["words"] if "words" in found else shlex.split(found["line"])
        return cls(tuple(words), bytes.fromhex(found["stdin_hex"]) if "stdin_hex" in found else found.get("stdin", "").encode())

    def __str__(self) -> str:
        return f"everforge {shlex.join(self.words)}" + (f" <<< {self.stdin!r}" if self.stdin else "")


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Program:
    command: Sequence[str | Path]

    def start(self, line: Line, env: Mapping[str, str], folder: Path) -> subprocess.Popen[bytes]:
        words = [*map(str, self.command), *line.words]
        return subprocess.Popen(words, env=dict(env), cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)

    def run(self, line: Line, env: Mapping[str, str], folder: Path) -> Answer:
        return ended(self.start(line, env, folder), line.stdin)


def ended(process: subprocess.Popen[bytes], stdin: bytes = b"") -> Answer:
    try:
        out, err = process.communicate(stdin, timeout=SECONDS_MAX)
    finally:
        process.kill()
        process.wait()
    return Answer(process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


PYTHON = Program([sys.executable, "-m", "everforge"])
_MANY = """
import base64, io, json, sys
from everforge import cli

answers = []
for given in json.loads(sys.stdin.read()):
    sys.stdin = io.TextIOWrapper(io.BytesIO(base64.b64decode(given["stdin"])), encoding="utf-8")
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True) for _ in range(2))
    try:
        code = cli.run(given["words"])
    except SystemExit as e:
        code = e.code
    said = [stream.buffer.getvalue().decode("utf-8", "replace") for stream in (sys.stdout, sys.stderr)]
    answers.append({"code": code, "out": said[0], "err": said[1]})
json.dump(answers, sys.__stdout__)
"""


def python_answers(lines: Iterable[Line], env: Mapping[str, str], folder: Path) -> list[Answer]:
    from base64 import b64encode

    given = [{"words": line.words, "stdin": b64encode(line.stdin).decode()} for line in lines]
    done = subprocess.run(
        [sys.executable, "-c", _MANY], input=json.dumps(given), env=dict(env), cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [Answer(**one) for one in json.loads(done.stdout)]


def home(folder: Path, **more: str) -> dict[str, str]:
    """The environment of a person who has nothing yet, in a folder with a few files to send."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hello.txt").write_text("hello\n")
    (folder / "file").touch()
    (folder / "there").mkdir()
    (folder / "tree" / "deep").mkdir(parents=True)
    (folder / "tree" / "deep" / "leaf").write_text("leaf\n")
    (folder / "tree" / "link").symlink_to("deep/leaf")
    (folder / "cut.ndjson").write_text('{"number": 1, "previous": "0"}\n')
    folders = {"HOME": folder, "XDG_CONFIG_HOME": folder / "config", "XDG_STATE_HOME": folder / "state", "EVERFORGE_DATA": folder / "data"}
    return {"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8", **{name: str(path) for name, path in folders.items()}, **more}


_VARYING = (
    (r"\bc0-[a-km-np-z2-9]{12}\b", "<machine>"),  # before the ids: a part of it may look like one
    (r"\b([tip])[a-km-np-z2-9]{11}([a-km-np-z2-9]{4})?(\.[a-z0-9]{40})?\b", r"<\1>"),  # ids: of tokens with their secrets, too
    (r"/login/[\w-]{32}", "/login/<secret>"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
    (r"\b[0-9a-f]{12,64}\b", "<hex>"),
    (r'("(?:runtime_ms|awake_seconds|instructions_ms|size_bytes|disk_bytes|memory_bytes|received_bytes|sent_bytes)": )[\d.]+', r"\1<number>"),
    (r'("last_used_at": )(null|"<time>")', r"\1<used>"),  # of a token: written now and then
    (r"(?m)^(<t>\t(?:[^\t]*\t){3}<time>\t)(-|<time>)\t", r"\1<used>\t"),
    (r"(?m)^(<p>\t.*\t)[\d.]+ k?B$", r"\1<size>"),  # of a snapshot
    (r'("cause": )"[^"]*"', r'\1"<cause>"'),  # in the words of the library below
    (r"(?m)^(awake_seconds|disk_bytes|memory_bytes)\t.*$", r"\1\t<number>"),
    (r"(?m)\t\d+\.\d kB$", "\t<size>"),  # of snapshots, which are compressed
)


def normal(answer: Answer, places: Mapping[str, str]) -> Answer:
    """Without what differs from run to run, and means nothing here. `places` are addresses and folders, by what they are called instead."""

    def clean(text: str) -> str:
        for name, place in places.items():
            text = text.replace(place or "<>", f"<{name}>")
        for pattern, instead in _VARYING:
            text = re.sub(pattern, instead, text)
        return text

    return Answer(answer.code, clean(answer.out), clean(answer.err))


def differences(lines: Iterable[Line], theirs: Iterable[Answer], ours: Iterable[Answer]) -> str:
    """One paragraph for each line that is answered otherwise than by Python's; none: "" ."""
    found = [f"{line}\n  Python: {a}\n  here:   {b}" for line, a, b in zip(lines, theirs, ours, strict=True) if a != b]
    return "\n\n".join(found)
