"""Runs the fuzzers for a while: seconds always, minutes in the long tests."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kit.length import TIMEOUT_FACTOR, length

pytestmark = pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris has no wheel for this Python")

HERE = Path(__file__).parent


def fuzz(fuzzer: str, folder: Path, seconds: int) -> int:
    """How many inputs were tried; fails with the fuzzer's own words.

    The limit on memory is far above what the decoder may take: the kernel counts what the test runner itself had before it became the fuzzer.
    """
    corpus, crashes = folder / "corpus", folder / "crashes"
    corpus.mkdir()
    crashes.mkdir()
    command = [sys.executable, str(HERE / fuzzer), f"-max_total_time={seconds}", "-max_len=4096", "-rss_limit_mb=4096", "-timeout=10"]
    ended = subprocess.run(
        [*command, f"-artifact_prefix={crashes}/", str(corpus)], capture_output=True, text=True, timeout=seconds + 120, check=False
    )
    found = [f"{path.name}: {path.read_bytes()!r}" for path in crashes.iterdir()]
    assert ended.returncode == 0, f"{ended.stderr[-4000:]}\n{found}"
    tried = re.search(r"Done (\d+) runs", ended.stderr)
    assert tried, ended.stderr[-4000:]
    return int(tried[1])


SECONDS = length(4, 240)


@pytest.mark.timeout(300 * TIMEOUT_FACTOR)
@pytest.mark.parametrize("fuzzer", ["fuzz_link.py", "fuzz_egress.py"])
def test_hostile_bytes_break_nothing(fuzzer: str, tmp_path: Path) -> None:
    assert fuzz(fuzzer, tmp_path, SECONDS) > 100 * SECONDS
