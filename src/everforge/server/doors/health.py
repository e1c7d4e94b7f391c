"""The server itself: is it there, what does it count, what does it understand."""

from __future__ import annotations

from starlette.responses import Response

from everforge import __version__
from everforge.wire import api

from ..calls import Call
from ..metrics import MEDIA
from ..routes import Routes

routes = Routes("server")


@routes.add("GET", "/healthz", scope=None)
async def healthz(call: Call) -> api.Health:
    """Answers when the server does."""
    return api.Health(status="ok", version=__version__)


@routes.add("GET", "/metrics", scope="read", owner_only=True, media=("text/plain",))
async def metrics(call: Call) -> Response:
    """Counters and gauges for Prometheus; with a token of the owner's."""
    return Response(call.service.metrics.text(await call.service.machines.counts()), media_type=MEDIA)
