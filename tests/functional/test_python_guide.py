"""docs/python.md tells the truth: its blocks are one program, and it runs."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from kit.real import real_machines
from kit.service import serving

GUIDE = Path(__file__).parents[2] / "docs/python.md"

pytestmark = pytest.mark.gvisor


async def test_the_guide_to_the_sdk_runs_from_its_first_block_to_its_last(tmp_path: Path) -> None:
    program = tmp_path / "guide.py"
    program.write_text("\n".join(re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)))
    async with real_machines(tmp_path / "data") as machines, serving(machines) as server:
        settings = {**os.environ, "EVERFORGE_URL": server.url, "EVERFORGE_TOKEN": server.token}
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(program), env=settings, cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await asyncio.wait_for(process.communicate(), 120)
    assert err.decode() == ""
    assert process.returncode == 0
    assert "machine says 2" in out.decode()
