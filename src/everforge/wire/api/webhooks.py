"""Webhooks, and what was delivered to them."""

from __future__ import annotations

from dataclasses import dataclass

from .base import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWebhook(Request):
    url: str
    events: list[str] | None = None
    secret: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    id: str
    url: str
    events: list[str]
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookCreated(Webhook):
    secret: str  # shown once


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookList:
    webhooks: list[Webhook]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookTested:
    delivered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    id: str
    webhook: str
    event: str
    body: str  # as it was signed
    created_at: str
    attempts: int
    error: str | None  # why the last try failed


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryList:
    deliveries: list[Delivery]
    let_go: int = 0  # older ones that there was no room for, since the server's start


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryDead(Request):
    id: str | None = None  # all of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried:
    deliveries: int
