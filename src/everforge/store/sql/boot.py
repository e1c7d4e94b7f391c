"""Did the computer go down while a server was running? Then what was told but not yet synced may be gone, and every counter jumps ahead."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from everforge.store.tape import INSTRUCTION_JUMP, POSITION_JUMP

from .tables import events, machines, runs


def kernel_boot_id() -> str:
    """New at every boot; a computer that does not tell is taken to have gone down."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"


def begin_run(connection: sa.Connection, boot: str) -> bool:
    """In one transaction: find out, jump if need be, and mark this run as not ended. True if it was an unclean boot."""
    last = connection.execute(sa.select(runs.c.boot, runs.c.clean).where(runs.c.id == 1)).one_or_none()
    unclean = last is not None and not last.clean and (last.boot != boot or boot == "unknown")
    if unclean:
        jump(connection)
    connection.execute(sa.delete(runs))
    connection.execute(sa.insert(runs).values(id=1, boot=boot, clean=False))
    return unclean


def end_run(connection: sa.Connection) -> None:
    connection.execute(sa.update(runs).values(clean=True))


def jump(connection: sa.Connection) -> None:
    """Why these sizes are enough: see the limits beside them, in store/tape.py."""
    of_machine = events.c.machine == machines.c.id
    last_end = sa.select(events.c.position + events.c.width).where(of_machine).order_by(events.c.position.desc()).limit(1).scalar_subquery()
    last_accepted = sa.select(sa.func.max(events.c.instruction) + 1).where(of_machine, events.c.kind == "accepted").scalar_subquery()
    inherited = sa.func.coalesce(machines.c.source_position, -1) + 1
    end = _larger(_larger(machines.c.position_floor, inherited), sa.func.coalesce(last_end, 0))
    instruction = _larger(machines.c.next_instruction, sa.func.coalesce(last_accepted, 0))
    connection.execute(
        sa.update(machines)
        .where(machines.c.deleted_at.is_(None))
        .values(position_floor=end + POSITION_JUMP, next_instruction=instruction + INSTRUCTION_JUMP)
    )


def _larger(a: sa.ColumnElement[int], b: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    """max(a, b), which SQLite and PostgreSQL spell differently."""
    return sa.case((a > b, a), else_=b)
