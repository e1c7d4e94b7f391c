"""What webhooks carry, and how it is signed: as the open specification "Standard Webhooks" has it, so that its libraries can check it. No I/O."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets

from .errors import InvalidInput

EVENTS = (
    "machine.created",
    "machine.woken",
    "machine.slept",
    "machine.broken",
    "machine.deleted",
    "instruction.ended",
    "limit.hit",
    "egress.blocked_burst",
    "auth.failures",
)
USUAL = tuple(event for event in EVENTS if event != "instruction.ended")  # what one gets who does not choose: that one comes too often
TEST = "webhook.test"
ID_HEADER, TIME_HEADER, SIGNATURE_HEADER = "webhook-id", "webhook-timestamp", "webhook-signature"
PREFIX = "whsec_"
SECRET_BYTES = (24, 64)


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES[0])).decode()


def key_of(secret: object) -> bytes:
    """The bytes that it stands for. Raises InvalidInput."""
    try:
        if isinstance(secret, str) and secret.startswith(PREFIX):
            key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
            if SECRET_BYTES[0] <= len(key) <= SECRET_BYTES[1]:
                return key
    except binascii.Error:
        pass
    raise InvalidInput(
        f"a webhook's secret is {PREFIX} and then {SECRET_BYTES[0]} to {SECRET_BYTES[1]} random bytes as base64; leave it out, and one is made"
    )


def signature(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """HMAC-SHA256 of `id.timestamp.body`."""
    signed = f"{id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key_of(secret), signed, hashlib.sha256)).decode()
