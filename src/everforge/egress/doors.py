"""The doors of all machines of a server, and what accounts may say of them."""

from __future__ import annotations

import resource
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from everforge.machines.doors import PolicyChange, Surroundings
from everforge.signals import Signals
from everforge.store.base import MachineRecord
from everforge.store.egress import AttemptRecord, EgressBook
from everforge.wire.errors import InvalidInput
from everforge.wire.ids import AccountId, MachineId

from . import settings as numbers
from .allowances import Allowances, Spending, Spent
from .authorities import host_bundle, trusting
from .authority import Authority
from .door import Door, World
from .indexing import IndexAccess
from .journal import Journal
from .limits import Meter
from .names import Askers, Lookup, look_up
from .outside import Outside, with_aliases
from .packages import PackageIndex
from .policy import Policy, make_policy, within
from .settings import EgressSettings, opened_place
from .strongroom import Strongroom
from .upstream import upstream_of
from .vault import Vault

LOG_LIMIT_MAX = 1000
METERS_MAX = 10_000


class EgressDoors:
    """`folder` keeps the door's own key and that of the secrets. `certificates` are those that machines must trust beside their image's, as PEM."""

    def __init__(
        self,
        book: EgressBook,
        folder: Path,
        settings: EgressSettings | None = None,
        index: PackageIndex | None = None,
        certificates: str = "",
        lookup: Lookup = look_up,
        signals: Signals | None = None,
        spent: Spent | None = None,
    ) -> None:
        self._settings = settings or EgressSettings()
        numbers.check(self._settings)
        self._book = book
        self._index = index or PackageIndex()
        authority = Authority.in_folder(folder)
        self._certificates = certificates + authority.certificate
        vault = Vault.in_folder(folder)
        self.secrets = Strongroom(book, vault)
        self._access = IndexAccess(self._index.settings, vault)
        self.allowances = Allowances(spent or _nobody_counts)
        self._journal = Journal(book, self._settings.egress_log_max, signals or Signals(), self.allowances)
        self._meters: dict[MachineId, Meter] = {}  # a machine that sleeps and wakes has its day all the same
        self._askers = Askers(lambda host, port: self._world.outside.lookup(host, port))
        outside = Outside(_opened(self._settings, self._index), lookup, upstream=upstream_of(self._index.settings.proxy))
        trust = trusting(host_bundle(self._index.settings.certificates))
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._world = World(outside, self._index, numbers.limits(self._settings), authority, trust, self._settings.egress_max, descriptors // 2)

    async def close(self) -> None:
        await self._index.close()
        await self._journal.close()

    # --- what machines ask ---------------------------------------------------------------------------------------------------------------

    def open(self, sock: socket.socket, record: Callable[[], MachineRecord]) -> Door:
        machine = record()
        return Door(
            sock,
            machine.name,
            self._world,
            policy=lambda: self._policy_of(record()),
            secrets=lambda: [*self._access.secrets, *self.secrets.of(machine.account)],
            journal=self._journal.of(machine),
            meter=self._meter_of(machine.id),
            spending=Spending(self.allowances, machine.account),
            lookup=self._askers.of_machine(machine.account),
        )

    def _meter_of(self, machine: MachineId) -> Meter:
        if machine not in self._meters and len(self._meters) >= METERS_MAX:
            del self._meters[next(iter(self._meters))]
        return self._meters.setdefault(machine, Meter(self._world.limits))

    async def surroundings(self, record: MachineRecord) -> Surroundings:
        await self.secrets.load(record.account)
        return Surroundings(self.secrets.environment(record.account), {"pip.conf": self._access.pip_conf, "certificates": self._certificates})

    async def new_policy(self, account: AccountId, word: str | None, allow: Sequence[str] | None) -> Mapping[str, Any]:
        default = await self.default(account)
        if word is None and allow is None:
            return default
        return self.changed_policy(default if word is None else {"policy": word}, PolicyChange(word, allow))

    def changed_policy(self, present: Mapping[str, Any], change: PolicyChange) -> Mapping[str, Any]:
        now = self._cut(present)  # what it has beyond the server's maximum, it has not
        word = change.word or now.word
        rules = now.allow if change.allow is None else make_policy("list", change.allow).allow
        if word == "none" and change.word is not None and change.allow is None:
            rules = []
        removed = make_policy("list", change.remove).allow
        if unknown := [rule for rule in removed if rule not in rules]:
            raise InvalidInput(f"there is no rule {unknown[0]} that could be taken away")
        if change.add and word == "none" and change.word is None:
            word = "list"  # what one rule more means for a machine that reached nothing
        kept = [rule for rule in rules if rule not in removed]
        asked = make_policy(word, list(dict.fromkeys([*kept, *make_policy("list", change.add).allow])))
        self._check(asked)
        return {"policy": asked.word, "allow": asked.allow}

    def _check(self, asked: Policy) -> None:
        widest = self._settings.egress_max
        if asked.rules and asked.word == "none":
            raise InvalidInput("a machine with egress `none` reaches nothing, whatever its rules: take `list` for what the rules allow and no more")
        if within(asked, widest) != asked:
            what = f"`{asked.word}` with rules" if asked.rules else f"`{asked.word}`"
            raise InvalidInput(f"this server allows egress up to `{widest}` (the setting egress_max), and {what} is more than that")

    async def log(self, machine: MachineId, before: int | None, limit: int) -> Sequence[AttemptRecord]:
        if not 1 <= limit <= LOG_LIMIT_MAX:
            raise InvalidInput(f"limit must be from 1 to {LOG_LIMIT_MAX} attempts")
        await self._journal.flush()
        return await self._book.attempts(machine, before, limit)

    # --- what accounts ask ---------------------------------------------------------------------------------------------------------------

    async def default(self, account: AccountId) -> Mapping[str, Any]:
        """Of the account's new machines: its own word, as far as the server's maximum lets it, or the server's."""
        return self.in_force(await self._book.default(account) or {"policy": self._settings.egress, "allow": list(self._settings.egress_allow)})

    async def set_default(self, account: AccountId, word: str | None, allow: Sequence[str] | None) -> Mapping[str, Any]:
        """None and None: the server's again. Raises InvalidInput."""
        usual = "list" if self._settings.egress == "none" else self._settings.egress  # with rules, and no word for what else
        told = None if word is None and allow is None else self.changed_policy({"policy": word or usual}, PolicyChange(word, allow))
        await self._book.set_default(account, told)
        return await self.default(account)

    def in_force(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Of what a machine was given, as much as the server's maximum lets it have now."""
        cut = self._cut(given)
        return {"policy": cut.word, "allow": cut.allow}

    def _policy_of(self, record: MachineRecord) -> Policy:
        return self._cut(record.egress)

    def _cut(self, given: Mapping[str, Any]) -> Policy:
        return within(_parsed(given.get("policy", "none"), tuple(given.get("allow", ()))), self._settings.egress_max)


@lru_cache(maxsize=256)
def _parsed(word: str, allow: tuple[str, ...]) -> Policy:
    """Asked for every attempt, and two hundred rules take as long to read as ten requests."""
    return make_policy(word, allow)


async def _nobody_counts(account: AccountId, count: int) -> None: ...


def _opened(settings: EgressSettings, index: PackageIndex) -> frozenset[tuple[str, int]]:
    opened = {opened_place(text) for text in settings.allow_hosts} | index.configured  # wherever the index's address lies
    return with_aliases(opened)
