"""Where a piece of Python ends at the prompt: the same in the command lines of all languages, which are tested with the same file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from everforge.cli.terminal.blocks import ends

CASES = json.loads((Path(__file__).parents[3] / "sdk" / "contract" / "blocks.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=[repr(case["text"]) for case in CASES])
def test_enter_runs_what_is_complete(case: dict[str, str | bool]) -> None:
    assert ends(str(case["text"])) is case["complete"]
