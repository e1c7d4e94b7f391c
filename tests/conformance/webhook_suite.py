"""What every book of webhooks does. Subclass it and give it a `store` fixture."""

from __future__ import annotations

from typing import Any

import pytest

from everforge.store.base import Store
from everforge.store.webhooks import DeliveryRecord, WebhookRecord
from everforge.wire.errors import DeliveryNotFound, TooMany, WebhookNotFound
from everforge.wire.ids import AccountId, new_delivery_id

ADA, BOB = AccountId("ada"), AccountId("bob")


def webhook(id: str = "w1", **values: Any) -> WebhookRecord:
    defaults: dict[str, Any] = {"account": ADA, "url": "https://example.org", "events": frozenset({"limit.hit", "machine.slept"})}
    return WebhookRecord(**{"id": id, "secret": "whsec_x", "created_at": 1.0, **defaults, **values})


def delivery(**values: Any) -> DeliveryRecord:
    defaults: dict[str, Any] = {"id": new_delivery_id(), "webhook": "w1", "account": ADA, "event": "limit.hit", "body": '{"é":1}'}
    return DeliveryRecord(**{**defaults, "created_at": 1.0, "next_at": 5.0, **values})


class WebhookSuite:
    async def test_webhooks_are_kept_until_they_are_removed_by_their_account(self, store: Store) -> None:
        await store.webhooks.add(webhook(), 2)
        await store.webhooks.add(webhook("w2", created_at=0.5), 2)
        with pytest.raises(TooMany):
            await store.webhooks.add(webhook("w3"), 2)
        await store.webhooks.add(webhook("w4", account=BOB, created_at=2.0), 2)
        assert await store.webhooks.all() == [webhook("w2", created_at=0.5), webhook(), webhook("w4", account=BOB, created_at=2.0)]
        for account, id in ((BOB, "w1"), (ADA, "w9")):
            with pytest.raises(WebhookNotFound):
                await store.webhooks.remove(account, id)
        await store.webhooks.enqueue([delivery()], 10)
        await store.webhooks.remove(ADA, "w1")
        assert [one.id for one in await store.webhooks.all()] == ["w2", "w4"]
        assert await store.webhooks.waiting() == 0
        await store.webhooks.remove_all(ADA)
        assert [one.id for one in await store.webhooks.all()] == ["w4"]

    async def test_deliveries_wait_for_their_time_and_only_so_many_of_one_webhook(self, store: Store) -> None:
        await store.webhooks.add(webhook(), 9)
        await store.webhooks.add(webhook("w2"), 9)
        first, second, other = delivery(), delivery(next_at=4.0), delivery(webhook="w2", next_at=9.0)
        assert await store.webhooks.enqueue([first, second, delivery(), other, delivery(webhook="nonesuch")], 2) == 2
        assert await store.webhooks.waiting() == 3
        assert await store.webhooks.due(6.0, 10) == [second, first]
        assert await store.webhooks.due(10.0, 1) == [second]
        assert await store.webhooks.due(10.0, 10, ["w1"]) == [other]
        await store.webhooks.arrived(second.id)
        await store.webhooks.failed(first.id, attempts=1, next_at=20.0, error="no")
        assert await store.webhooks.due(10.0, 10) == [other]
        [again] = await store.webhooks.due(21.0, 10, ["w2"])
        assert (again.id, again.attempts, again.error, again.body) == (first.id, 1, "no", first.body)

    async def test_the_dead_can_be_looked_at_and_tried_anew_and_there_are_only_so_many(self, store: Store) -> None:
        await store.webhooks.add(webhook(), 9)
        lost = [delivery(created_at=float(n)) for n in range(4)]
        await store.webhooks.enqueue(lost, 10)
        gone = [await store.webhooks.bury(one.id, attempts=8, error="gone", at=50.0, at_most=3) for one in lost]
        assert gone == [0, 0, 0, 1]
        assert await store.webhooks.bury("nonesuch", attempts=8, error="gone", at=50.0, at_most=3) == 0
        assert await store.webhooks.waiting() == 0
        assert await store.webhooks.due(100.0, 10) == []
        dead = await store.webhooks.dead(ADA, 10)
        assert [(one.id, one.attempts, one.error, one.dead_at) for one in dead] == [(one.id, 8, "gone", 50.0) for one in lost[:0:-1]]
        assert await store.webhooks.dead(BOB, 10) == []
        with pytest.raises(DeliveryNotFound):
            await store.webhooks.revive(BOB, lost[1].id, 60.0, 10)
        assert await store.webhooks.revive(ADA, lost[1].id, 60.0, 10) == 1
        assert [(one.id, one.attempts) for one in await store.webhooks.due(61.0, 10)] == [(lost[1].id, 0)]
        assert await store.webhooks.revive(ADA, None, 60.0, 10) == 2
        assert await store.webhooks.waiting() == 3

    async def test_no_more_of_the_dead_are_tried_anew_than_may_wait_for_their_webhook_and_the_others_stay(self, store: Store) -> None:
        for id in ("w1", "w2"):
            await store.webhooks.add(webhook(id), 9)
        lost = [delivery(created_at=float(n), webhook=id) for id in ("w1", "w2") for n in range(4)]
        await store.webhooks.enqueue(lost, 10)
        for one in lost:
            await store.webhooks.bury(one.id, attempts=8, error="gone", at=50.0, at_most=10)
        await store.webhooks.enqueue([delivery(webhook="w1")], 10)
        assert await store.webhooks.revive(ADA, None, 60.0, 3) == 2 + 3
        assert {one.id for one in await store.webhooks.dead(ADA, 10)} == {lost[2].id, lost[3].id, lost[7].id}  # the oldest went first
        with pytest.raises(TooMany):
            await store.webhooks.revive(ADA, lost[2].id, 60.0, 3)
        assert await store.webhooks.waiting() == 6

    async def test_what_waits_too_long_is_brought_forward_by_how_often_it_was_tried(self, store: Store) -> None:
        await store.webhooks.add(webhook(), 9)
        soon, new, once, often = (delivery(next_at=at) for at in (5.0, 99.0, 99.0, 99.0))
        dead = delivery(next_at=99.0)
        await store.webhooks.enqueue([soon, new, once, often, dead], 10)
        await store.webhooks.failed(once.id, attempts=1, next_at=99.0, error="no")
        await store.webhooks.failed(often.id, attempts=7, next_at=99.0, error="no")
        await store.webhooks.bury(dead.id, attempts=8, error="gone", at=50.0, at_most=3)
        await store.webhooks.hasten([10.0, 20.0, 30.0])
        assert [(one.id, one.next_at) for one in await store.webhooks.due(100.0, 10)] == [
            (soon.id, 5.0), (new.id, 10.0), (once.id, 20.0), (often.id, 30.0)
        ]  # fmt: skip
        assert [one.next_at for one in await store.webhooks.dead(ADA, 10)] == [99.0]
