"""A token of a server that does not know us yet: the two requests without one."""

from __future__ import annotations

import json
import re

from everforge.wire import api
from everforge.wire.errors import InvalidInput
from everforge.wire.sentences import say

from ..config import Access, check_url
from ..decoding import decode
from .door import AsyncDoor, body_of, segment

_CODE = re.compile(r"[A-Za-z0-9_-]{1,200}")  # of a link: what an address takes as it stands


async def sign_up(base_url: str, email: str, account_name: str, invitation: str | None = None) -> api.SignedUp:
    """Its `token` is shown this once, or None when it was mailed. Asked once: whether a cut request made the account, only its owner can know."""
    door = AsyncDoor(Access(check_url(base_url), ""))
    request = api.SignUp(email=email, account_name=account_name, invitation=invitation)
    try:
        body = json.dumps(body_of(request)).encode()
        return decode(api.SignedUp, await door.ask("POST", f"{door.base_url}/internal/signup", body, again=False))
    finally:
        await door.close()


async def log_in(link: str) -> tuple[str, api.LoggedIn]:
    """With a one-time link: the server's address, and a token that is shown this once. Asked once, since the link is used up by it."""
    before, found, code = link.strip().rpartition("/login/")
    if not found or not _CODE.fullmatch(code):
        raise InvalidInput(say("bad_link"))
    door = AsyncDoor(Access(check_url(before), ""))
    try:
        return door.base_url, decode(api.LoggedIn, await door.ask("POST", f"{door.base_url}/login/{segment(code)}", b"{}", again=False))
    finally:
        await door.close()
