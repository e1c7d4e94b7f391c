"""The replay server of the contract, in a process of its own as every SDK starts it."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kit.steps import CONTRACT

TRANSCRIPTS = sorted(path.stem for path in (CONTRACT / "transcripts").glob("*.json"))


@dataclass(frozen=True)
class Replay:
    url: str

    def steps(self, name: str) -> list[dict[str, Any]]:
        """To be done from the beginning."""
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/again/{name}", method="POST"), timeout=10).close()
        return json.loads((CONTRACT / "transcripts" / f"{name}.json").read_text())["steps"]

    def problems(self, name: str) -> list[str]:
        with urllib.request.urlopen(f"{self.url}/verdict/{name}", timeout=10) as answer:
            return json.load(answer)["problems"]

    def variables(self, name: str) -> dict[str, Any]:
        return {"url": f"{self.url}/{name}", "token": "replay.token"}


@contextmanager
def replay_server() -> Iterator[Replay]:
    process = subprocess.Popen([sys.executable, CONTRACT / "replay.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Replay(process.stdout.readline().removeprefix("ready ").strip())
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()
