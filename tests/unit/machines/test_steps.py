"""The walks that are killed at every step go through every step that there is: those named in the code, and every arrow of the lifecycle."""

from __future__ import annotations

import re
from pathlib import Path

import everforge.machines
from everforge.machines.lifecycle import Arrow
from kit import callwalks
from kit.walks import WALKS, Journal, house_for, prepare

SOURCES = Path(everforge.machines.__file__).parent
FAILURES = {
    Arrow.START_FAILED,
    Arrow.SAVE_FAILED,
    Arrow.WAKE_FAILED,
    Arrow.SNAPSHOT_BAD,
    Arrow.SANDBOX_LOST,
    Arrow.RESUMED,
}  # nothing fails in a walk
NOT_OPERATIONS = {
    "change",
    "update",
    "name point",
    "unname point",
    "add template point",
    "output",
}  # a plain write each, as `accept` is; and wanted_again needs two clients
ARROWS = set(Arrow) - FAILURES - {Arrow.WANTED_AGAIN}


def named_in_the_code() -> set[str]:
    text = "".join(file.read_text() for file in SOURCES.glob("*.py"))
    acts = set(re.findall(r'steps\.step\("([^"]+)"\)', text))
    writes = set(re.findall(r'step="([^"]+)"', text))
    assert acts
    assert writes
    return acts | {f"record {name}" for name in writes - NOT_OPERATIONS} | {f"record {arrow}" for arrow in ARROWS}


async def test_the_walks_go_through_every_step_of_the_code() -> None:
    heard: set[str] = set()
    for name, walk in WALKS.items():
        house = house_for(name)
        await house.start()
        journal = Journal()
        await prepare(house.machines, journal)
        await walk(house.machines, journal)
        heard |= set(house.life.steps)
        await house.close()
    house = await callwalks.prepared()
    await callwalks.walk(house.machines, "sleep")
    heard |= set(house.life.steps)
    await house.close()
    wanted = named_in_the_code()
    assert {f"before {step}" for step in wanted} <= heard
    assert {f"after {step}" for step in wanted} <= heard
