# Made from _async/webhooks.py by tools/make_sync.py; change it there.
"""Webhooks of the account."""

from __future__ import annotations

from collections.abc import Sequence

from everforge.wire import api

from .door import Door, segment


class Webhooks:
    def __init__(self, door: Door) -> None:
        self._door = door

    def list(self) -> list[api.Webhook]:
        return (self._door.get(api.WebhookList, "/webhooks")).webhooks

    def add(self, url: str, *, events: Sequence[str] | None = None, secret: str | None = None) -> api.WebhookCreated:
        """Its `secret` is shown this once. Without `events`: all but `instruction.ended`."""
        request = api.NewWebhook(url=url, events=None if events is None else [*events], secret=secret)
        return self._door.post(api.WebhookCreated, "/webhooks", request)

    def delete(self, id: str) -> None:
        """With all that is on its way to it."""
        self._door.delete(f"/webhooks/{segment(id)}")

    def test(self, id: str) -> None:
        """Send it one event now. Raises WebhookFailed, which says why it did not arrive."""
        self._door.post(api.WebhookTested, f"/webhooks/{segment(id)}/test")

    def dead(self) -> list[api.Delivery]:
        """What was tried often enough, newest first."""
        return (self.given_up()).deliveries

    def given_up(self) -> api.DeliveryList:
        """The same, and how many older ones there was no room for."""
        return self._door.get(api.DeliveryList, "/webhooks/dead")

    def retry(self, id: str | None = None) -> int:
        """One of them, or all, is tried anew; how many."""
        return (self._door.post(api.Retried, "/webhooks/dead/retry", api.RetryDead(id=id))).deliveries
