"""Webhooks of an account: who is told of what, and what could not be told."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from everforge.store.webhooks import WebhookRecord
from everforge.webhooks.places import URL_LENGTH_MAX
from everforge.wire import api
from everforge.wire.errors import DeliveryNotFound, InvalidInput, TooMany, WebhookFailed, WebhookNotFound

from ..calls import Call
from ..routes import Routes
from ..times import to_wire

routes = Routes("webhooks")


def _fields(webhook: WebhookRecord) -> dict[str, Any]:
    return {"id": webhook.id, "url": webhook.url, "events": sorted(webhook.events), "created_at": to_wire(webhook.created_at)}


@routes.add("GET", "/v1/webhooks", scope="manage")
async def list_webhooks(call: Call) -> api.WebhookList:
    """The account's webhooks, without their secrets."""
    return api.WebhookList(webhooks=[api.Webhook(**_fields(one)) for one in call.service.webhooks.of(call.identity.account)])


@routes.add(
    "POST", "/v1/webhooks", action="webhook.add", scope="manage", confidential=True, errors=(TooMany,),
    example={"url": "https://example.org/hook", "events": ["machine.broken"]},
)  # fmt: skip
async def add_webhook(call: Call, body: api.NewWebhook) -> api.WebhookCreated:
    """Be told of events at an address. Its secret, which every delivery is signed with, is shown this once."""
    if len(body.url) > URL_LENGTH_MAX:
        raise InvalidInput(f"the address of a webhook has {URL_LENGTH_MAX} characters at most, and this one {len(body.url)}: give a shorter one")
    made = await call.service.webhooks.add(call.identity.account, body.url, body.events, body.secret)
    call.notes.update({"host": urlsplit(made.url).hostname, "events": sorted(made.events)})  # the rest of the address may hold a secret
    return api.WebhookCreated(**_fields(made), secret=made.secret)


@routes.add("DELETE", "/v1/webhooks/{id}", action="webhook.delete", scope="manage", errors=(WebhookNotFound,))
async def delete_webhook(call: Call) -> api.Deleted:
    """Delete a webhook, and all that is on its way to it."""
    await call.service.webhooks.remove(call.identity.account, call.path("id"))
    return api.Deleted(deleted=True)


@routes.add("POST", "/v1/webhooks/{id}/test", action="webhook.test", scope="manage", errors=(WebhookNotFound, WebhookFailed, TooMany))
async def test_webhook(call: Call) -> api.WebhookTested:
    """Send it an event now, once, and say what came of it."""
    await call.service.webhooks.test(call.identity.account, call.path("id"))
    return api.WebhookTested(delivered=True)


@routes.add("GET", "/v1/webhooks/dead", scope="manage")
async def list_dead(call: Call) -> api.DeliveryList:
    """What was tried so often that it is not tried any more, newest first, and how many older ones had to go for them."""
    found = await call.service.webhooks.dead(call.identity.account)
    shown = [
        api.Delivery(id=d.id, webhook=d.webhook, event=d.event, body=d.body, created_at=to_wire(d.created_at), attempts=d.attempts, error=d.error)
        for d in found
    ]
    return api.DeliveryList(deliveries=shown, let_go=call.service.webhooks.let_go(call.identity.account))


@routes.add("POST", "/v1/webhooks/dead/retry", action="webhook.retry", scope="manage", errors=(DeliveryNotFound,), example={})
async def retry_dead(call: Call, body: api.RetryDead | None = None) -> api.Retried:
    """Try what was given up anew: one delivery, or all of them."""
    return api.Retried(deliveries=await call.service.webhooks.retry(call.identity.account, body.id if body else None))
