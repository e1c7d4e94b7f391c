"""The walks of kit.walks by a client of a server in a process of its own, and what must hold when that server was killed on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from .real import until_gone
from .serverprocess import Refusal, ServerProcess, check_nothing_leaked
from .walks import WALKS

NAME, FORK, SECOND = "walker", "walker-fork", "second"


class NotDone(Exception):
    """An instruction ended in another way than by its value."""


@dataclass
class Journal:
    """What this client sent, and what it was told."""

    sent: list[int] = field(default_factory=list[int])
    acknowledged: dict[int, int] = field(default_factory=dict[int, int])  # what was appended -> by which instruction
    points: dict[str, list[int]] = field(default_factory=dict[str, list[int]])  # by their names, with what `seen` was
    done: bool = False  # the walk came to its end, and its client was told so


async def fresh(server: ServerProcess) -> Journal:
    """The machine that every walk begins with."""
    for name in (NAME, FORK, SECOND):
        try:
            await server.call("delete", name=name)
        except Refusal as e:
            if e.code != "MachineNotFound":
                raise
    journal = Journal()
    await server.call("create", name=NAME)
    await server.call("run", name=NAME, code="seen = []")
    await append(server, journal)
    await snapshot(server, journal, "start")
    await append(server, journal)
    return journal


async def append(server: ServerProcess, journal: Journal) -> None:
    number = len(journal.sent)
    journal.sent.append(number)
    ended = await server.call("run", name=NAME, code=f"seen.append({number})")
    if ended["end"] != "value":
        raise NotDone(f"{ended['end']}: {ended['error']}")
    journal.acknowledged[number] = ended["instruction"]


async def snapshot(server: ServerProcess, journal: Journal, label: str) -> None:
    await server.call("snapshot", name=NAME, snapshot_name=label)
    journal.points[label] = list(journal.acknowledged)


async def walk(server: ServerProcess, operation: str, journal: Journal) -> None:
    match operation:
        case "create":
            await server.call("create", name=SECOND)
            assert (await server.call("run", name=SECOND, code="1 + 1"))["value"] == "2"
        case "exec":
            await append(server, journal)
        case "save":
            await snapshot(server, journal, "walk")
            await append(server, journal)
        case "sleep and wake":
            await server.call("hibernate", name=NAME)
            await append(server, journal)
        case "fork":
            await server.call("fork", name=NAME, names=[FORK])
            assert (await server.call("run", name=FORK, code="len(seen)"))["end"] == "value"
        case "rollback":
            await server.call("rollback", name=NAME, snapshot="start")
            await server.call("run", name=NAME, code="1")
        case "reset":
            await server.call("reset", name=NAME)
            await server.call("run", name=NAME, code="1")
        case "forget":
            await server.call("hibernate", name=NAME)
            await server.call("forget", name=NAME, snapshot="start")
        case "delete":
            await server.call("delete", name=NAME)
        case "each":
            await server.call("update", name=NAME, durability="each")
            await append(server, journal)
        case "pack":
            await snapshot(server, journal, "one")
            await append(server, journal)
            await snapshot(server, journal, "two")
            await server.call("until_packed", name=NAME)
        case _:
            raise AssertionError(operation)


GOING_BACK = {"rollback": "[0]", "reset": "NameError"}  # what `seen` is afterwards
STATES = {"creating", "ready", "busy", "hibernating", "asleep", "waking"}  # nothing here may break a machine
# The same as on the fake engine, where a test holds them against every step that the code has. Going back without a save has no step of its own.
# How a disk that its machine has filled gets empty is tested in test_full_disk.py.
OPERATIONS = [name for name in WALKS if not name.endswith(("and discard", "on a full disk"))]


async def check(server: ServerProcess, operation: str, journal: Journal) -> None:
    """A state that the tables allow, every acknowledged result there once, every machine answers."""
    views = {v["record"]["name"]: v for v in await server.call("list")}
    assert set(views) <= {NAME, FORK, SECOND}
    for name, view in views.items():
        assert view["state"] in STATES, view
        tape = await server.call("tape", name=name)
        ended = [e["instruction"] for e in tape if e["kind"] == "ended"]
        assert len(ended) == len(set(ended)), "an instruction ended twice"
        if name != SECOND:
            values = {e["instruction"] for e in tape if e["kind"] == "ended" and e["end"] == "value"}
            assert values >= set(list(journal.acknowledged.values())[: 2 if name == FORK else None]), "a result that was told is not on the tape"
    await check_machine(server, operation, journal, there=NAME in views)
    if FORK in views or (operation == "fork" and journal.done):
        assert (await server.call("run", name=FORK, code="seen"))["value"] == "[0, 1]"
    if operation == "pack":
        await check_points(server, journal)
    if SECOND in views or (operation == "create" and journal.done):
        assert (await server.call("run", name=SECOND, code="1 + 1"))["value"] == "2"


async def check_machine(server: ServerProcess, operation: str, journal: Journal, *, there: bool) -> None:
    if operation == "delete" and (journal.done or not there):
        assert not there, "it was deleted, and is there again"
        return
    assert there, "the machine is gone, and nobody asked for that"
    answer = await server.call("run", name=NAME, code="seen")
    as_before = answer["value"] == repr(list(journal.acknowledged))
    if operation in GOING_BACK:
        gone_back = GOING_BACK[operation] in (answer["value"] or answer["error"])
        assert gone_back or (as_before and not journal.done), answer
        return
    seen: list[int] = eval(answer["value"])
    assert seen == sorted(set(seen)), "twice, or out of order"
    assert set(journal.acknowledged) <= set(seen) <= set(journal.sent), (journal, seen)


async def check_points(server: ServerProcess, journal: Journal) -> None:
    """Every point that was told can be gone back to, from whatever form it was left in; and then all are packed, and nothing else is there."""
    for label, seen in journal.points.items():
        await server.call("rollback", name=NAME, snapshot=label)  # checks every byte against the hashes of when it was saved
        assert (await server.call("run", name=NAME, code="seen"))["value"] == repr(seen), label
    await server.call("until_packed", name=NAME)


async def end(server: ServerProcess, data: Path) -> None:
    """Of a test: nothing is left of its server, its machines and its warden."""
    await fresh(server)
    await server.call("delete", name=NAME)
    await check_nothing_leaked(server)
    await server.stop()
    await until_gone(data)
