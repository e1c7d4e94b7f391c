"""What a machine was not allowed to reach, and how a person allows it."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, Field

from ..answers import Answer
from ..calls import Call
from ..reading import closing
from ..visible import line
from .base import Arguments, Data, MachineName, Tool, reads

LIMIT = 20
LOOKED_AT_MAX = 2000  # of a long log, the newest
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")


class ShowEgressRefusals(Arguments):
    machine: MachineName = ""
    limit: Annotated[int, Field(ge=1, le=200)] = LIMIT


class Attempt(BaseModel):
    time: str
    host: str
    port: int
    verdict: str = Field(description="refused: not allowed; failed: allowed, but it could not be reached.")
    why: str


class Refusals(Data):
    machine: str
    egress: str = Field(description="none, list, packages (the package index) or public.")
    allowed: list[str] = Field(description="What is allowed beyond that.")
    attempts: list[Attempt] = Field(description="What did not get through, newest first.")
    remedy: str | None = Field(default=None, description="What the person can run to allow it. You cannot.")


async def show_egress_refusals(call: Call, given: ShowEgressRefusals) -> Answer:
    machine = await call.existing(given.machine)
    policy = await machine.egress.show()
    found: list[Attempt] = []
    looked_at = 0
    async with closing(machine.egress.log()) as attempts:
        async for one in attempts:
            looked_at += 1
            if one.verdict in ("refused", "failed"):
                found.append(Attempt(time=one.time, host=line(one.host), port=one.port, verdict=one.verdict, why=line(one.why)))
            if len(found) == given.limit or looked_at == LOOKED_AT_MAX:
                break
    data = Refusals(
        machine=machine.name, egress=policy.egress, allowed=policy.egress_allow, attempts=found, remedy=_remedy(machine.name, found)
    )  # fmt: skip
    return Answer(_text(data), data)


def _remedy(machine: str, found: list[Attempt]) -> str | None:
    """What code in a machine called a host may be anything: only what can be one goes into a command that a person is to run."""
    hosts = list(dict.fromkeys(_rule(one) for one in found if one.verdict == "refused" and _HOST.fullmatch(one.host)))
    return f"everforge egress allow {machine} {' '.join(hosts)}" if hosts else None


def _rule(attempt: Attempt) -> str:
    if attempt.port in (80, 443):
        return attempt.host
    return f"'[{attempt.host}]:{attempt.port}'" if ":" in attempt.host else f"{attempt.host}:{attempt.port}"  # shells heed brackets


def _text(data: Refusals) -> str:
    allowed = f", and {', '.join(data.allowed)}" if data.allowed else ""
    lines = [f"{data.machine} may reach: {data.egress}{allowed}."]
    lines += [f"{one.time}  {one.verdict}  {one.host}:{one.port}  {one.why}" for one in data.attempts] or ["Nothing was refused."]
    if data.remedy:
        lines.append(f"You cannot change this. Ask the person you work for whether it is wanted; if it is, they run: {data.remedy}")
    return "\n".join(lines)


SHOW = Tool(
    "show_egress_refusals",
    "Show refused network access",
    """Show what a machine tried to reach and was not allowed to, or could not reach, newest first, with the command by which a person allows it.

Use it when a download, an API call or pip fails in a machine: machines reach the package index and nothing else, unless somebody allows more.

Example: {}""",
    ShowEgressRefusals,
    Refusals,
    reads(),
    show_egress_refusals,
)
