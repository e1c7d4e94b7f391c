# Made from _async/signup.py by tools/make_sync.py; change it there.
"""An account at a server that does not know us yet: the one request without a token."""

from __future__ import annotations

import json

from everforge.wire import api

from ..config import Access, check_url
from ..decoding import decode
from .door import Door, body_of


def sign_up(base_url: str, email: str, account_name: str, invitation: str | None = None) -> api.SignedUp:
    """Its `token` is shown this once, or None when it was mailed. Asked once: whether a cut request made the account, only its owner can know."""
    door = Door(Access(check_url(base_url), ""))
    request = api.SignUp(email=email, account_name=account_name, invitation=invitation)
    try:
        body = json.dumps(body_of(request)).encode()
        return decode(api.SignedUp, door.ask("POST", f"{door.base_url}/internal/signup", body, again=False))
    finally:
        door.close()
