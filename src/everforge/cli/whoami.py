"""`everforge whoami`."""

from __future__ import annotations

from .options import Json


def whoami(json: Json = False) -> None:
    """Which account at which server, and where its token comes from.

    Example: everforge whoami
    """
    from everforge import Everforge
    from everforge.client.config import find_access

    from .tables import print_fields, print_json

    access = find_access()
    with Everforge(access.token, access.base_url) as server:
        found = server.account()
    token = found.token
    if json:
        print_json({"account": found.account, "owner": found.owner, "server": access.base_url, "token": token, "token_from": access.source})
        return
    fields = [("account", found.account + (" (owner)" if found.owner else "")), ("server", access.base_url), ("token from", access.source)]
    print_fields([*fields, ("may", " ".join(token.scopes))] if token else fields)
