"""All webhooks there are, in memory: events are many, and each must find its hearers without a look at everybody's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from everforge.store.webhooks import WebhookRecord
from everforge.wire.ids import AccountId


class Roll:
    def __init__(self, records: Iterable[WebhookRecord] = ()) -> None:
        self._by_id: dict[str, WebhookRecord] = {}
        self._by_account: dict[AccountId, dict[str, WebhookRecord]] = {}
        for record in records:
            self.add(record)

    def add(self, record: WebhookRecord) -> None:
        self._by_id[record.id] = record
        self._by_account.setdefault(record.account, {})[record.id] = record

    def drop(self, id: str) -> None:
        if (record := self._by_id.pop(id, None)) is None:
            return
        del self._by_account[record.account][id]
        if not self._by_account[record.account]:
            del self._by_account[record.account]

    def drop_all(self, account: AccountId) -> None:
        for record in self.of(account):
            self.drop(record.id)

    def get(self, id: str) -> WebhookRecord | None:
        return self._by_id.get(id)

    def of(self, account: AccountId) -> Sequence[WebhookRecord]:
        return list(self._by_account.get(account, {}).values())

    def hearers(self, kind: str, accounts: Collection[AccountId]) -> Sequence[WebhookRecord]:
        """Those of these accounts that want to hear of this kind of event."""
        return [one for account in accounts for one in self._by_account.get(account, {}).values() if kind in one.events]
