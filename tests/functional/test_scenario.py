"""The one scenario (sdk/contract/scenario.json), against a real server on gVisor: with every SDK, in a browser, and through every command line.

What is cut in it is the wire between client and server, so that each of them has to find its way back."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kit.browser import Page, needs_chromium, page
from kit.cargo import needs_cargo
from kit.commandserver import command_server
from kit.commandsteps import CommandDriver
from kit.ground import Ground, ground
from kit.sdks import rust_binary, rust_example, typescript_sdk
from kit.steps import CONTRACT, Driver

pytestmark = [pytest.mark.gvisor, pytest.mark.slow, pytest.mark.timeout(2700)]
SCENARIO = CONTRACT / "scenario.json"
STEPS = json.loads(SCENARIO.read_text())["steps"]
SECONDS_MAX = 300


@pytest.fixture(scope="module")
def there() -> Iterator[Ground]:
    with command_server(EVERFORGE_CORS_ORIGINS="*") as served, ground(served.url, served.token) as found:
        yield found


def run(command: list[str | Path], there: Ground, folder: Path) -> None:
    """A program that does the steps by itself, and says which of them went wrong."""
    variables = folder / "variables.json"
    variables.write_text(json.dumps(there.variables()))
    done = subprocess.run([*command, SCENARIO, variables], capture_output=True, text=True, timeout=SECONDS_MAX)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert len(done.stdout.splitlines()) >= len([step for step in STEPS if step.get("only", "sdk") == "sdk"])


@pytest.mark.parametrize("asynchronous", [True, False], ids=["async", "sync"])
def test_with_the_python_sdk(there: Ground, asynchronous: bool) -> None:
    asyncio.run(Driver(there.variables(), asynchronous=asynchronous).run(STEPS))


def test_with_the_typescript_sdk_in_node(there: Ground, tmp_path: Path) -> None:
    sdk = typescript_sdk()
    run([sdk.node, sdk.scenario], there, tmp_path)


@needs_chromium
def test_with_the_typescript_sdk_in_a_browser(there: Ground, tmp_path: Path) -> None:
    # A page is not told why a connection failed: of that sentence alone it says less.
    steps = json.loads(SCENARIO.read_text().replace("(the connection was refused)", "(the connection failed)"))["steps"]
    with page(typescript_sdk().browser_bundle, tmp_path) as opened:
        assert isinstance(opened, Page)
        outcome = opened.outcome({"steps": steps, "variables": there.variables()}, SECONDS_MAX)
    assert outcome["ok"], outcome
    assert len(outcome["done"]) == len([step for step in steps if step.get("only", "sdk") == "sdk"])


@needs_cargo
def test_with_the_rust_sdk(there: Ground, tmp_path: Path) -> None:
    run([rust_example("scenario")], there, tmp_path)


def test_through_the_python_command_line(there: Ground, tmp_path: Path) -> None:
    CommandDriver([sys.executable, "-m", "everforge"], there.variables(), str(tmp_path)).run(STEPS)


def test_through_the_typescript_command_line(there: Ground, tmp_path: Path) -> None:
    sdk = typescript_sdk()
    CommandDriver([str(sdk.node), str(sdk.command)], there.variables(), str(tmp_path)).run(STEPS)


@needs_cargo
def test_through_the_rust_command_line(there: Ground, tmp_path: Path) -> None:
    CommandDriver([str(rust_binary())], there.variables(), str(tmp_path)).run(STEPS)


def test_a_scenario_that_is_not_met_is_told(there: Ground) -> None:
    """Else all of these could pass without looking."""
    wrong = [{"do": "whoami", "gives": {"account": "nobody at all"}}]
    with pytest.raises(AssertionError, match="nobody at all"):
        asyncio.run(Driver(replace(there).variables(), asynchronous=True).run(wrong))
    with pytest.raises(AssertionError, match="nobody at all"):
        CommandDriver([sys.executable, "-m", "everforge"], there.variables(), "/").run(wrong)
