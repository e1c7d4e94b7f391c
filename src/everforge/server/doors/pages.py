"""Pages for people with a browser: what this is, and the one-time log-in link."""

from __future__ import annotations

import html
from string import Template

from starlette.responses import HTMLResponse, Response

from everforge import __version__
from everforge.wire import api
from everforge.wire.errors import LinkInvalid, TooMany

from ..answers import answer
from ..calls import Call
from ..routes import Routes
from ..times import to_wire

routes = Routes("pages")
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}
PAGE = Template("""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Everforge</title>
<style>
body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:4rem auto;padding:0 1rem;color:#1d2327;background:#fbfaf8}
pre{background:#1d2327;color:#f3efe6;padding:1rem;border-radius:8px;overflow-x:auto}
button{font:inherit;padding:.6rem 1.2rem;border-radius:8px;border:0;background:#b4501c;color:#fff;cursor:pointer}
</style>
<h1>Everforge</h1>$body</html>
""")
FRONT = """<p>Python machines that never forget. This is version $version of the server.</p>
<p>Its API is described in <a href="/openapi.json">/openapi.json</a>. On the computer that it runs on, no log-in is needed:</p>
<pre>everforge machine new
everforge repl</pre>"""
OPEN_LINK = """<p>This link gives one token, once. Use it on the computer that you want to work from.</p>
<form method="post"><button>Log in</button></form>"""
LOGGED_IN = """<p>You are <b>$account</b>. This is your token; it is not shown again:</p><pre>$token</pre><p>Use it with the command line:</p>
<pre>everforge login --api-base-url $url --token $token</pre><p>or from Python:</p>
<pre>from everforge import Everforge
client = Everforge(token="$token", base_url="$url")</pre>"""


def page(body: str, status: int = 200, **values: str) -> Response:
    shown = Template(body).substitute({name: html.escape(value) for name, value in values.items()})
    return HTMLResponse(PAGE.substitute(body=shown), status, HEADERS)


@routes.add("GET", "/", scope=None, media=("text/html",))
async def front(call: Call) -> Response:
    """What this is."""
    return page(FRONT, version=__version__)


@routes.add("POST", "/v1/links", action="login.link", scope="manage", confidential=True, errors=(TooMany,))
async def new_link(call: Call) -> api.LogInLink:
    """A one-time log-in link for this account, to be opened on another computer."""
    link = call.service.accounts.new_link(call.identity)
    return api.LogInLink(url=f"{call.service.url(call.request)}/login/{link.code}", expires_at=to_wire(link.expires_at))


@routes.add("GET", "/login/{code}", scope=None, media=("text/html",))
async def show_link(call: Call) -> Response:
    """A log-in link, opened: shows a button. Looking at it uses nothing up, since mail programs look at links too."""
    return page(OPEN_LINK)


@routes.add(
    "POST",
    "/login/{code}",
    action="login.use",
    scope=None,
    confidential=True,
    errors=(LinkInvalid, TooMany),
    answer=api.LoggedIn,
    media=("application/json", "text/html"),
)
async def use_link(call: Call) -> Response:
    """Use a log-in link: a token, shown this once."""
    made = await call.service.accounts.redeem(call.path("code"))
    call.sight.caller = who = await call.service.accounts.identify(made.token)  # it is this account's, which is to see it in the log
    account = call.notes["account"] = who.account_name
    url = call.service.url(call.request)
    if "text/html" in call.request.headers.get("accept", ""):
        return page(LOGGED_IN, account=account, token=made.token, url=url)
    return answer(api.LoggedIn(account=account, token=made.token, url=url))
