"""`everforge machine new`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..options import Env, ExpiresAt, Json, Tags, among, pairs, whole


def new(
    name: Annotated[str | None, typer.Option(help="Its name. [default: one is made up]")] = None,
    tag: Tags = None,
    memory_mb: Annotated[int | None, typer.Option(callback=whole, help="Memory.")] = None,
    cpus: Annotated[float | None, typer.Option(help="Processors; 0.5 is half of one.")] = None,
    disk_mb: Annotated[int | None, typer.Option(callback=whole, help="Disk.")] = None,
    processes: Annotated[int | None, typer.Option(callback=whole, help="How many processes and threads it may have.")] = None,
    image: Annotated[str | None, typer.Option(help="Name of a recipe, or digest of an image.")] = None,
    env: Env = None,
    egress: Annotated[str | None, typer.Option(help="What it may reach: none, list, packages (the package index), public.")] = None,
    allow: Annotated[list[str] | None, typer.Option(metavar="HOST", help="A host that it may reach as well. Repeatable.")] = None,
    idle_seconds: Annotated[float | None, typer.Option(help="After how long without work it goes to sleep.")] = None,
    expires_at: ExpiresAt = None,
    history: Annotated[str | None, typer.Option(help="Points to go back to: idle (at each sleep) or each (after each instruction).")] = None,
    durability: Annotated[str | None, typer.Option(help="What outlives the computer: idle (each sleep) or each (each instruction).")] = None,
    from_snapshot: Annotated[str | None, typer.Option(metavar="MACHINE:SNAPSHOT", help="Begin as a copy of this snapshot.")] = None,
    json: Json = False,
) -> None:
    """Make a machine and print its name. What is not given is as the server has it.

    Example: everforge machine new --name first --tag team=red
    """
    from everforge.wire import api

    from ..connection import connected, suggesting
    from ..progress import waiting
    from ..tables import print_json

    among(api.Egress, "--egress", [egress])
    among(api.When, "--history", [history])
    among(api.When, "--durability", [durability])
    wanted: dict[str, Any] = {
        "tags": pairs(tag, "--tag"), "memory_mb": memory_mb, "cpus": cpus, "disk_mb": disk_mb, "processes": processes, "image": image,
        "env": pairs(env, "--env"), "egress": egress, "egress_allow": allow,
        "idle_seconds": idle_seconds, "expires_at": expires_at, "history": history, "durability": durability,
        "from_snapshot": _snapshot(from_snapshot),
    }  # fmt: skip
    copied = wanted["from_snapshot"]
    with connected() as server, suggesting(copied and copied[0]), waiting("making a machine"):
        made = server.create(name, **wanted)
    print_json({"machine_name": made.name}) if json else print(made.name)


def _snapshot(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    machine, _, snapshot = text.partition(":")
    if not machine or not snapshot:
        raise typer.BadParameter(f"{text!r} is not MACHINE:SNAPSHOT", param_hint="--from-snapshot")
    return machine, snapshot
