"""The SDKs in TypeScript and Rust pass their own tests, in their own runners: the transcripts of sdk/contract among them, every one."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kit.cargo import needs_cargo, workshop
from kit.nodemodules import environment, install, node
from kit.sdks import RUST, TYPESCRIPT
from kit.steps import CONTRACT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2700)]
RUN_SECONDS = 900
TRANSCRIPTS = {path.stem for path in (CONTRACT / "transcripts").glob("*.json")}


def test_vitest_passes(tmp_path: Path) -> None:
    install(TYPESCRIPT)
    report = tmp_path / "report.json"
    program = [node(), TYPESCRIPT / "node_modules" / "vitest" / "vitest.mjs", "run", "--reporter=json", f"--outputFile={report}"]
    done = subprocess.run(program, cwd=TYPESCRIPT, env=environment(), capture_output=True, text=True, timeout=RUN_SECONDS)
    assert report.exists(), f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    tests: list[dict[str, Any]] = [test for file in json.loads(report.read_text())["testResults"] for test in file["assertionResults"]]
    assert [f"{test['fullName']}: {test['failureMessages']}" for test in tests if test["status"] != "passed"] == []
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    said = " ".join(test["fullName"] for test in tests)
    assert {name for name in TRANSCRIPTS if not re.search(rf"\b{name}\b", said)} == set()


@needs_cargo
def test_cargo_test_passes() -> None:
    said = workshop(RUST).cargo("test", "--locked", manifest=RUST, seconds=RUN_SECONDS + 1500)
    passed = re.findall(r"^test (.+) \.\.\. ok$", said, re.MULTILINE)
    assert re.findall(r"^test result: ok\. \d+ passed; 0 failed; (\d+) ignored", said, re.MULTILINE).count("0") >= 2, said[-3000:]
    assert "every_transcript_is_replayed_to_its_end" in passed
