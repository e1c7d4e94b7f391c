"""How much is under way at once: to one webhook, of one account, and in all. Whose receivers never answer keeps nobody else waiting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator
from contextlib import contextmanager

from everforge.store.webhooks import DeliveryRecord, WebhookRecord
from everforge.wire.ids import AccountId

AT_ONCE_MAX = 16
OF_ACCOUNT_MAX = 4  # an account has many webhooks, and none of them need answer: the others' alarms must find a place
OF_ONE_MAX = 2


class Slots:
    def __init__(self) -> None:
        self._to: Counter[str] = Counter()  # by webhook
        self._of: Counter[AccountId] = Counter()

    @property
    def full(self) -> bool:
        return self._of.total() >= AT_ONCE_MAX

    @property
    def busy_webhooks(self) -> Collection[str]:
        return [id for id, count in self._to.items() if count >= OF_ONE_MAX]

    @property
    def busy_accounts(self) -> Collection[AccountId]:
        return [account for account, count in self._of.items() if count >= OF_ACCOUNT_MAX]

    def has_room(self, webhook: WebhookRecord) -> bool:
        return not self.full and self._to.get(webhook.id, 0) < OF_ONE_MAX and self._of.get(webhook.account, 0) < OF_ACCOUNT_MAX

    def take(self, to: WebhookRecord | DeliveryRecord) -> None:
        self._to[_webhook(to)] += 1
        self._of[to.account] += 1

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
