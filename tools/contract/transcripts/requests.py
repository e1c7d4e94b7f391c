"""Plain requests: asked once, asked again, in pages."""

from __future__ import annotations

from everforge.wire import api, errors

from ..lists import MACHINE, SNAPSHOT, listed
from .words import KEY, Json, M, ask, fails, lost, post, refused, script, told, transcript


@transcript
def whoami() -> dict[str, Json]:
    return script(
        "who asks",
        [{"do": "whoami", "gives": {"account": "ada"}}],
        [told(ask("GET", "/whoami", headers={"user-agent": {"$has": "everforge-"}}), api.Whoami(account="ada"))],
    )


@transcript
def pages_of_machines() -> dict[str, Json]:
    first = {"tag": ["team=red", "kind=a b&c"], "limit": "500"}
    return script(
        "a list that comes in two pages, by tags with letters that an address must quote",
        [{"do": "machines", "with": {"tags": {"team": "red", "kind": "a b&c"}}, "gives": ["second", "first"]}],
        [
            told(ask("GET", "/machine/list", query=first), api.MachineList(machines=[listed("second")], next="cursor")),
            told(ask("GET", "/machine/list", query={**first, "after": "cursor"}), api.MachineList(machines=[listed("first")], next=None)),
        ],
    )


@transcript
def create_with_everything() -> dict[str, Json]:
    given = {
        "name": "full", "tags": {"a": "b"}, "metadata": {"n": [1, 2]}, "memory_mb": 512, "cpus": 0.5, "disk_mb": 1000, "processes": 40, "image": "minimal",
        "env": {"A": "1"}, "egress": "list", "egress_allow": ["api.example.com"], "idle_seconds": 60.0, "expires_at": "2030-01-31T12:00:00Z",
        "history": "each", "durability": "idle", "from_snapshot": {"machine": "old", "snapshot": "s"},
    }  # fmt: skip
    return script(
        "every option of a new machine is on the wire as it was given",
        [{"do": "create", "as": "x", "with": given, "gives": {"name": "full"}}],
        [told(post("/machine/new", given, same=KEY), api.MachineCreated(machine_name="full"))],
    )


@transcript
def create_again_after_a_cut() -> dict[str, Json]:
    request = post("/machine/new", {"tags": {"a": "b"}}, same=KEY)
    return script(
        "a request that was cut off is asked again under the same key, and so are a busy and a stopping server",
        [{"do": "create", "as": "x", "with": {"tags": {"a": "b"}}, "gives": {"name": "m"}}],
        [
            lost(request),
            refused(request, errors.NoCapacity("there is no room for now"), **{"Retry-After": "0"}),
            refused(request, errors.Stopping("the server stops"), **{"Retry-After": "0"}),
            told(request, api.MachineCreated(machine_name="m")),
        ],
    )


@transcript
def not_asked_again() -> dict[str, Json]:
    url = "${url}"
    return script(
        "what is not safe to do twice is not done twice",
        [M, fails({"do": "interrupt", "on": "m"}, "Uncertain", f"the connection to {url} was cut: whether the request was carried out is not known")],
        [lost(post("/machine/m/interrupt", {}))],
    )


@transcript
def machine_and_its_changes() -> dict[str, Json]:
    m = "/machine/m"
    return script(
        "looked at, changed, sent to sleep, woken, reset, deleted",
        [
            M,
            {"do": "info", "on": "m", "gives": {"name": "m", "state": "ready", "position": 7, "tags": {"team": "red"}}},
            {"do": "update", "on": "m", "with": {"tags": {"a": "b"}, "idle_seconds": 5.0, "expires_at": "never"}, "gives": {"name": "m"}},
            {"do": "hibernate", "on": "m", "gives": {"name": "m"}},
            {"do": "wake", "on": "m", "gives": {"name": "m"}},
            {"do": "reset", "on": "m", "gives": {"undo": "p1"}},
            {"do": "reset", "on": "m", "with": {"discard": True}, "gives": {"undo": None}},
            {"do": "delete", "on": "m", "gives": None},
        ],
        [
            told(ask("GET", m), MACHINE),
            told(post(m, {"tags": {"a": "b"}, "idle_seconds": 5.0, "expires_at": "never"}, "PATCH"), MACHINE),
            told(post(f"{m}/hibernate", {}), MACHINE),
            told(post(f"{m}/wake", {}), MACHINE),
            told(post(f"{m}/reset", {}), api.WasReset(undo="p1")),
            told(post(f"{m}/reset", {"discard": True}), api.WasReset(undo=None)),
            told(ask("DELETE", m), api.Deleted(deleted=True)),
        ],
    )


@transcript
def delete_that_was_cut() -> dict[str, Json]:
    request = ask("DELETE", "/machine/m")
    return script(
        "whether it was deleted is found out by asking again: it is gone",
        [M, {"do": "delete", "on": "m", "gives": None}],
        [lost(request), refused(request, errors.MachineNotFound("there is no machine m"))],
    )


@transcript
def copies_and_points() -> dict[str, Json]:
    m = "/machine/m"
    return script(
        "forks, snapshots and going back",
        [
            M,
            {"do": "fork", "on": "m", "as": "f", "with": {"name": "copy"}, "gives": {"name": "copy"}},
            {"do": "fork", "on": "m", "gives": {"name": "c0-x"}},
            {"do": "forks", "on": "m", "with": {"count": 2}, "gives": ["c0-1", "c0-2"]},
            {"do": "snapshot", "on": "m", "with": {"name": "before"}, "gives": {"id": "p1", "name": "before", "instruction": 4}},
            {"do": "snapshots", "on": "m", "gives": [{"id": "p1"}]},
            {"do": "delete_snapshot", "on": "m", "with": {"snapshot": "a/b c"}, "gives": None},
            {"do": "rollback", "on": "m", "with": {"to": "before"}, "gives": {"snapshot": {"id": "p1"}, "undo": "p2"}},
            {"do": "rollback", "on": "m", "with": {"to": 4, "discard": True}, "gives": {"undo": None}},
            {"do": "rollback", "on": "m", "gives": {"undo": "p2"}},
        ],
        [
            told(post(f"{m}/fork", {"names": ["copy"]}, same={"idempotency-key": "one"}), api.Forked(machine_name="copy", machine_names=["copy"])),
            told(post(f"{m}/fork", {}, same={"idempotency-key": "two"}), api.Forked(machine_name="c0-x", machine_names=["c0-x"])),
            told(post(f"{m}/fork", {"count": 2}, same={"idempotency-key": "three"}), api.Forked(machine_name="c0-1", machine_names=["c0-1", "c0-2"])),
            told(post(f"{m}/snapshots", {"name": "before"}), SNAPSHOT),
            told(ask("GET", f"{m}/snapshots"), api.SnapshotList(snapshots=[SNAPSHOT])),
            told(ask("DELETE", f"{m}/snapshots/a/b c"), api.Deleted(deleted=True)),
            told(post(f"{m}/rollback", {"to": "before"}), api.RolledBack(snapshot=SNAPSHOT, undo="p2")),
            told(post(f"{m}/rollback", {"to": 4, "discard": True}), api.RolledBack(snapshot=SNAPSHOT, undo=None)),
            told(post(f"{m}/rollback", {}), api.RolledBack(snapshot=SNAPSHOT, undo="p2")),
        ],
    )


@transcript
def completion() -> dict[str, Json]:
    found = api.Completed(matches=["print", "property"], start=0, end=2, busy=False)
    return script(
        "what could stand at the cursor",
        [
            M,
            {
                "do": "complete",
                "on": "m",
                "with": {"code": "pr", "cursor": 2},
                "gives": {"matches": ["print", "property"], "start": 0, "end": 2, "busy": False},
            },
        ],
        [told(post("/machine/m/complete", {"code": "pr", "cursor": 2}), found)],
    )
