"""The audit log: who did what, and what came of it. An account sees its own entries, the owner of the server all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from everforge.store.audit import AuditQuery as Wanted
from everforge.wire import api
from everforge.wire.audit import DROPPED, PRUNED, UNREADABLE
from everforge.wire.errors import Forbidden, InvalidInput
from everforge.wire.ids import AccountId
from everforge.wire.sentences import show

from ..calls import Call
from ..routes import Routes
from ..times import from_wire

routes = Routes("audit")
REFUSED_READ = "read"  # as the witness calls it


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery(api.Query):
    since: str | None = None
    machine: str | None = None
    action: str | None = None  # the whole of it, or its first part: machine finds machine.create
    account: str | None = None  # by name or id; for the owner
    after: int = 0
    limit: int | None = None
    last: bool = False  # the newest ones


@routes.add("GET", "/v1/audit", scope="manage")
async def read_audit(call: Call, query: AuditQuery) -> api.AuditPage:
    """The audit log, oldest entry first."""
    most = call.service.settings.list_max
    limit = most if query.limit is None else query.limit
    if not 1 <= limit <= most or query.after < 0:
        raise InvalidInput(f"limit must be from 1 to {most} entries, and after not below 0")
    if query.action is not None:
        _check_action(query.action)
    since_ms = None if query.since is None else int(from_wire("since", query.since) * 1000)
    account = await _account(call, query.account)
    wanted = Wanted(
        account=account, machine=query.machine, action=query.action, since_ms=since_ms, after=query.after, limit=limit, last=query.last
    )  # fmt: skip
    book = call.service.witness.recorder.book
    head = await book.head() if call.identity.is_owner else None  # before the entries: what is written meanwhile is on the next page
    found = list(await book.entries(wanted))
    next = found[-1].number if len(found) == limit and not query.last else None
    return api.AuditPage(entries=found, next=next, head=head)


def _check_action(wanted: str) -> None:
    """One that is misspelt must not pass for one that nobody did. Raises InvalidInput."""
    known = _actions()
    if not any(action == wanted or action.startswith(f"{wanted}.") for action in known):
        raise InvalidInput(f"there is no action {show(wanted)}; there are {', '.join(known)}, or the first part of one")


@cache
def _actions() -> tuple[str, ...]:
    """Of every route, of reads that were refused, and the log's own."""
    from ..app import DOORS  # it imports this file

    return (*sorted({route.action for door in DOORS for route in door.routes if route.action}), REFUSED_READ, PRUNED, DROPPED, UNREADABLE)


async def _account(call: Call, named: str | None) -> AccountId | None:
    if call.identity.is_owner:
        return None if named is None else await call.service.accounts.id_named(named)
    if named is not None and named not in (call.identity.account, call.identity.account_name):
        raise Forbidden("an account sees its own entries; only the owner of the server sees those of others")
    return call.identity.account
