"""Webhooks of the account."""

from __future__ import annotations

from collections.abc import Sequence

from everforge.wire import api

from .door import AsyncDoor, segment


class AsyncWebhooks:
    def __init__(self, door: AsyncDoor) -> None:
        self._door = door

    async def list(self) -> list[api.Webhook]:
        return (await self._door.get(api.WebhookList, "/webhooks")).webhooks

    async def add(self, url: str, *, events: Sequence[str] | None = None, secret: str | None = None) -> api.WebhookCreated:
        """Its `secret` is shown this once. Without `events`: all but `instruction.ended`."""
        request = api.NewWebhook(url=url, events=None if events is None else [*events], secret=secret)
        return await self._door.post(api.WebhookCreated, "/webhooks", request)

    async def delete(self, id: str) -> None:
        """With all that is on its way to it."""
        await self._door.delete(f"/webhooks/{segment(id)}")

    async def test(self, id: str) -> None:
        """Send it one event now. Raises WebhookFailed, which says why it did not arrive."""
        await self._door.post(api.WebhookTested, f"/webhooks/{segment(id)}/test")

    async def dead(self) -> list[api.Delivery]:
        """What was tried often enough, newest first."""
        return (await self.given_up()).deliveries

    async def given_up(self) -> api.DeliveryList:
        """The same, and how many older ones there was no room for."""
        return await self._door.get(api.DeliveryList, "/webhooks/dead")

    async def retry(self, id: str | None = None) -> int:
        """One of them, or all, is tried anew; how many."""
        return (await self._door.post(api.Retried, "/webhooks/dead/retry", api.RetryDead(id=id))).deliveries
