"""`everforge login` and `everforge logout`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Json, Server

if TYPE_CHECKING:
    from everforge.client.config import Access


def login(
    link: Annotated[str | None, typer.Argument(metavar="[LINK]", help="A one-time link, of `everforge token link` or of the server's start.")] = None,
    token: Annotated[str | None, typer.Option(help="The token. Others on this computer may see it: better be asked, or pipe it in.")] = None,
    api_base_url: Server = None,
    json: Json = False,
) -> None:
    """Use a server from this computer. Its token is asked for, tried, and kept in ~/.config/everforge/config.json for the next time.

    A one-time link brings a token of its own. On the server's own computer no log-in is needed.

    Example: everforge login --api-base-url https://machines.example.org
    """
    from .tables import print_json

    if link is not None and (token is not None or api_base_url is not None):
        raise typer.BadParameter("a link has the address and the token in it: leave out --token and --api-base-url", param_hint="LINK")
    access = _access(token, api_base_url) if link is None else _linked(link)
    account = keep(access)
    print_json({"account": account, "server": access.base_url}) if json else print(f"logged in as {account} at {access.base_url}")


def _access(token: str | None, api_base_url: str | None) -> Access:
    from everforge.client.config import Access, check_token

    from .asking import ask_secret

    url = server_address(api_base_url)
    return Access(url, check_token(token or ask_secret(f"Token for {url}", "--token")))


def _linked(link: str) -> Access:
    from everforge.client._sync.signup import log_in
    from everforge.client.config import Access

    url, made = log_in(link)
    return Access(url, made.token)


def logout(json: Json = False) -> None:
    """Forget the token that `everforge login` kept. The token stays good: `everforge token revoke` ends it.

    Example: everforge logout
    """
    from everforge.client.config import config_path, delete_config

    from .failures import local
    from .tables import print_json

    with local(config_path()):
        gone = delete_config()
    if json:
        print_json({"logged_out": gone})
    else:
        print("logged out" if gone else "there was no log-in")
    _warn_of_environment("it is still used")


def server_address(given: str | None) -> str:
    """What was given, else the environment's, the last log-in's, or this computer's server."""
    from everforge.client.config import check_url, find_access, local_url
    from everforge.wire.errors import ConfigurationBad
    from everforge.wire.sentences import say

    if given or os.environ.get("EVERFORGE_URL"):
        return check_url(given or os.environ["EVERFORGE_URL"])
    try:
        return find_access().base_url
    except ConfigurationBad as error:
        url = local_url()
        if url is None:
            raise ConfigurationBad(say("no_server_given")) from error
        return url


def keep(access: Access) -> str:
    """Tried first. The account's name."""
    from everforge import Everforge
    from everforge.client.config import config_path, write_config
    from everforge.wire.errors import Unauthenticated
    from everforge.wire.sentences import say

    from .failures import local

    with Everforge(access.token, access.base_url) as server:
        try:
            account = server.whoami()
        except Unauthenticated as error:
            error.message = say("token_unknown_login", url=access.base_url)
            raise
    with local(config_path()):
        write_config(access)
    _warn_of_environment("it goes before this log-in")
    return account


def _warn_of_environment(what: str) -> None:
    from .failures import say

    if os.environ.get("EVERFORGE_TOKEN"):
        say(f"everforge: EVERFORGE_TOKEN is set: {what}")
