"""What of a call goes into the audit log: who asked for what, from where, and what came of it. Never what a body or an answer holds, but for names
and numbers.

A route says by its `action` that it changes something; then every call of it is an entry. Reads are none, unless they are refused.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.requests import HTTPConnection

from everforge.accounts.identity import Identity
from everforge.accounts.rates import customer
from everforge.audit.details import fitting, short
from everforge.audit.recorder import Recorder
from everforge.audit.refusals import Refusals
from everforge.audit.settings import AuditSettings
from everforge.signals import Signals
from everforge.store.threads import to_its_end
from everforge.wire.audit import OK, Seen, moment
from everforge.wire.errors import EverforgeError, Forbidden, InvitationInvalid, LinkInvalid, Unauthenticated
from everforge.wire.ids import AccountId

T = TypeVar("T")
HasMachine = Callable[[AccountId, str], Awaitable[bool]]
ADDRESS_MAX = 64  # characters: an IPv6 address with its zone
NOT_TOLD = frozenset({"name", "code"})  # of a path: the machine has a field of its own, and the code of a log-in link is a secret
# Of an answer: names and numbers of what was made. Everything else in it is between the server and who asked.
TOLD_OF_ANSWERS = ("machine_name", "machine_names", "instruction_seq", "account", "id", "undo")
OF_ACCOUNT = "requests_per_second"  # a limit that has to do with no machine; who is over it costs no look into the store
LIMITS = frozenset({413, 429})  # HTTP statuses of refusals that are a limit
UNTRUSTED = (Unauthenticated, Forbidden, LinkInvalid, InvitationInvalid)  # refused for who asks, not for what is asked


@dataclass(slots=True)
class Sight:
    """One call, as far as it has come."""

    action: str | None  # None: it only reads
    route: str  # for people: GET /v1/machine/{name}
    address: str
    request: str  # its id
    wait: bool = False  # its entry is written before it is answered
    caller: Identity | None = None
    token: str | None = None  # the id of one that was not good, where there is such a token
    machine: str | None = None
    notes: dict[str, Any] = field(default_factory=dict[str, Any])


def address_of(connection: HTTPConnection) -> str:
    """Of who is at the other end of the connection, whatever it says of itself."""
    return connection.client.host[:ADDRESS_MAX] if connection.client else ""


def hash_of_code(code: str) -> str:
    """To know a piece of code again, for whoever has it."""
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()


def of_path(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name not in NOT_TOLD}


def of_answer(answer: object) -> dict[str, Any]:
    return {name: value for name in TOLD_OF_ANSWERS if (value := getattr(answer, name, None)) is not None}


class Witness:
    def __init__(self, recorder: Recorder, settings: AuditSettings, signals: Signals, has_machine: HasMachine) -> None:
        self.recorder = recorder
        self._of_strangers = Refusals(settings.audit_refusals_per_minute)
        self._of_accounts = Refusals(settings.audit_account_refusals_per_minute)
        self._signals = signals
        self._has_machine = has_machine

    async def saw(self, sight: Sight, error: EverforgeError | None) -> None:
        """Whatever comes of it: an answer never fails for the log's sake."""
        if error is not None:
            await self._tell(sight, error)
        if sight.action is None and not isinstance(error, UNTRUSTED):
            return  # before it is counted: what would be no entry takes no room from what is one
        if error is not None and not self._has_room(sight, error):
            return
        seen = self._seen(sight, error)
        if await self.recorder.record(seen, wait=sight.wait and error is None) == 1:  # the first of its kind that is only counted
            self._signals.tell("limit.hit", account=seen.account, limit="audit_account_days")

    async def _tell(self, sight: Sight, error: EverforgeError) -> None:
        account = sight.caller.account if sight.caller else None
        if error.http_status in LIMITS:
            limit = error.details.get("limit", error.code)
            self._signals.tell("limit.hit", account=account, machine=await self._machine(sight, limit), limit=limit)
        if isinstance(error, UNTRUSTED):
            self._signals.tell("auth.failure", account=account, reason=error.code, address=sight.address, token=sight.token)

    async def _machine(self, sight: Sight, limit: object) -> str | None:
        """Its name, if the account has it: what else somebody calls for is told to nobody, and takes nobody's memory."""
        if sight.caller is None or sight.machine is None or limit == OF_ACCOUNT:
            return None
        try:
            return sight.machine if await self._has_machine(sight.caller.account, sight.machine) else None
        except Exception:
            return None  # the answer does not fail for it

    def _has_room(self, sight: Sight, error: EverforgeError) -> bool:
        """Of what is refused, and changes nothing, there is only so much in the log.

        Where the account is known it is that account's, so that it takes no room from others who come through the same proxy; and each kind has its
        own, so that many harmless ones do not hide another.
        """
        if sight.caller is None:
            admitted, left_out = self._of_strangers.admit(customer(sight.address))
        else:
            admitted, left_out = self._of_accounts.admit(f"{sight.caller.account} {error.code}")
        if left_out:
            sight.notes["left_out"] = left_out
        return admitted

    def _seen(self, sight: Sight, error: EverforgeError | None) -> Seen:
        who = sight.caller
        notes = sight.notes if sight.action is not None else {"route": sight.route, **sight.notes}
        return Seen(
            time=moment(time.time()),
            action=sight.action or "read",
            outcome=OK if error is None else error.code,
            account=who.account if who else None,
            account_name=who.account_name if who else None,
            token=who.token_id if who else sight.token,
            machine=None if sight.machine is None else short(sight.machine),
            address=sight.address,
            request=sight.request,
            detail=fitting(notes),
        )


@dataclass(frozen=True, slots=True)
class Scene:
    """The same for what comes over a WebSocket, whose caller and machine stay the same."""

    witness: Witness
    caller: Identity
    address: str
    request: str
    admit: Callable[[], Awaitable[None]]  # one more request of the account. Raises TooMany

    async def saw(
        self, action: str, machine: str, error: EverforgeError | None = None, *, wait: bool = False, notes: Mapping[str, Any] | None = None
    ) -> None:
        sight = Sight(action, action, self.address, self.request, wait, caller=self.caller, machine=machine, notes=dict(notes or {}))
        await self.witness.saw(sight, error)

    async def watched(self, action: str, machine: str, act: Awaitable[T], notes: Callable[[T], Mapping[str, Any]]) -> T:
        """What it does and its entry are one: a connection that ends in between, or a token that is revoked, does not part them."""
        return await to_its_end(self._watched(action, machine, act, notes))

    async def _watched(self, action: str, machine: str, act: Awaitable[T], notes: Callable[[T], Mapping[str, Any]]) -> T:
        try:
            found = await act
        except Exception as e:
            await self.saw(action, machine, e if isinstance(e, EverforgeError) else EverforgeError("a mistake of the server's"))
            raise
        await self.saw(action, machine, notes=notes(found))
        return found
