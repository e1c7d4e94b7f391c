"""`everforge signup`."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import Json, Server


def signup(
    email: Annotated[str | None, typer.Option(help="Your address. [default: asked for]")] = None,
    account_name: Annotated[str | None, typer.Option(help="What to call the account. [default: asked for]")] = None,
    invitation: Annotated[str | None, typer.Option(help="An invitation of the server's owner, where one is needed.")] = None,
    api_base_url: Server = None,
    json: Json = False,
) -> None:
    """Make an account at a server, and log in to it. Its token is printed this once, or comes by mail.

    Example: everforge signup --api-base-url https://machines.example.org
    """
    from everforge.client._sync.signup import sign_up
    from everforge.client.config import Access

    from .asking import ask
    from .failures import say
    from .login import keep, server_address
    from .tables import print_json

    url = server_address(api_base_url)
    done = sign_up(url, email or ask("E-mail", "--email"), account_name or ask("Account name", "--account-name"), invitation)
    if json:
        print_json({"account": done.account, "server": url, "token": done.token, "mailed": done.mailed})
    elif done.token is not None:
        print(done.token, flush=True)
    if done.token is None:
        say(f"everforge: check your mail for the token, then run `everforge login --api-base-url {url}`")
    else:
        keep(Access(url, done.token))
        say(f"everforge: this is the token of {done.account}, shown this once; you are logged in")
