"""How much is under way at once: to one webhook, of one account, and in all. Whose receivers never answer keeps no other account waiting.

Some places are for whoever comes first. Beyond them each account has one of its own, so that it finds room however many others wait for answers.
Where even those are taken, accounts take turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager

from everforge.store.webhooks import DeliveryRecord, WebhookRecord
from everforge.wire.ids import AccountId

AT_ONCE_MAX = 1_000  # connections of the server's
COMMON_MAX = 16  # of those, for whoever comes first
OF_ACCOUNT_MAX = 4  # an account has many webhooks, and none of them need answer
OF_ONE_MAX = 2
TURNS_MAX = 10 * AT_ONCE_MAX  # accounts whose last turn is remembered


class Slots:
    def __init__(self) -> None:
        self._to: Counter[str] = Counter()  # by webhook
        self._of: Counter[AccountId] = Counter()
        self._turns: dict[AccountId, int] = {}  # which was the last of each; in that order
        self._turn = 0

    @property
    def full(self) -> bool:
        return self._of.total() >= AT_ONCE_MAX

    @property
    def busy_webhooks(self) -> Collection[str]:
        return [id for id, count in self._to.items() if count >= OF_ONE_MAX]

    @property
    def busy_accounts(self) -> Collection[AccountId]:
        return [account for account, count in self._of.items() if count >= self._of_account_max]

    @property
    def _of_account_max(self) -> int:
        return OF_ACCOUNT_MAX if self._of.total() < COMMON_MAX else 1

    def has_room(self, to: WebhookRecord | DeliveryRecord) -> bool:
        return not self.full and self._to.get(_webhook(to), 0) < OF_ONE_MAX and self._of.get(to.account, 0) < self._of_account_max

    def in_turn(self, found: Iterable[DeliveryRecord]) -> Sequence[DeliveryRecord]:
        """Whose account has waited longest for a turn first."""
        return sorted(found, key=lambda one: (self._turns.get(one.account, 0), one.next_at))

    def take(self, to: WebhookRecord | DeliveryRecord) -> None:
        self._to[_webhook(to)] += 1
        self._of[to.account] += 1
        self._turn += 1
        self._turns.pop(to.account, None)
        self._turns[to.account] = self._turn
        if len(self._turns) > TURNS_MAX:
            del self._turns[next(iter(self._turns))]

    def give_back(self, to: WebhookRecord | DeliveryRecord) -> None:
        self._to -= Counter([_webhook(to)])  # which also forgets those that are at 0
        self._of -= Counter([to.account])

    @contextmanager
    def taken(self, to: WebhookRecord) -> Generator[None]:
        self.take(to)
        try:
            yield
        finally:
            self.give_back(to)


def _webhook(to: WebhookRecord | DeliveryRecord) -> str:
    return to.id if isinstance(to, WebhookRecord) else to.webhook
