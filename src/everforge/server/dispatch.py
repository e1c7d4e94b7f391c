"""From a route to an answer: who asks, what was sent, the handler, its answer or the one form of error."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from everforge import __version__
from everforge.wire.errors import EverforgeError, MethodNotAllowed, Unauthenticated

from .answers import VERSION_HEADER, departing, refusal
from .bodies import decode, decode_query, query_values, read_body
from .calls import Call, admit, allow, bearer, check_key, count_astray, identify, new_request_id
from .routes import Route
from .service import Service
from .streams import Cut
from .witness import Sight, address_of, of_answer, of_path

log = logging.getLogger(__name__)


class Endpoint:
    """One path: an ASGI application that gives each method to its route."""

    def __init__(self, service: Service, path: str, routes: Mapping[str, Route]) -> None:
        self._service = service
        self._path = path
        self._routes = routes
        self._allow = ", ".join(sorted({*routes, "HEAD"} if "GET" in routes else routes))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        request_id = new_request_id()
        began = time.perf_counter()
        response = await self._respond(request, request_id)
        response.headers["X-Request-Id"] = request_id
        response.headers[VERSION_HEADER] = __version__
        self._service.metrics.answered(request.method, self._path, response.status_code, time.perf_counter() - began)
        await self._send(response, request, request_id, send)

    async def _send(self, response: Response, request: Request, request_id: str, send: Send) -> None:
        """An answer that fails in its middle is cut off: what it is about was told with its first byte, or nothing can be told any more."""
        try:
            if request.method == "HEAD" and isinstance(response, StreamingResponse):
                response = await _headers_of(response)
            await response(request.scope, request.receive, send)
        except (Cut, EverforgeError):
            raise Cut from None
        except Exception:
            log.exception("request %s (%s %s) failed in the middle of its answer", request_id, request.method, self._path)
            raise Cut from None

    async def _respond(self, request: Request, request_id: str) -> Response:
        try:
            route = self._routes.get("GET" if request.method == "HEAD" else request.method)
            if route is None:
                await count_astray(self._service, request, request_id)
                response = refusal(MethodNotAllowed(f"{self._path} takes {self._allow}, not {request.method[:20]}"), request_id)
                response.headers["Allow"] = self._allow
                return response
            return await self._witnessed(route, request, request_id)
        except EverforgeError as e:
            return refusal(e, request_id)
        except Exception:
            log.exception("request %s (%s %s) failed", request_id, request.method, self._path)
            return refusal(_mistake(request_id), request_id)

    async def _witnessed(self, route: Route, request: Request, request_id: str) -> Response:
        """What changes something, or is refused for who asks, is seen by the audit log before it is answered."""
        sight = Sight(route.action, f"{route.method} {route.path}", address_of(request), request_id)
        sight.wait = route.scope != "exec"  # what happens inside machines is on their tapes, and must be quick
        try:
            response = await self._handle(route, request, request_id, sight)
        except EverforgeError as e:
            if isinstance(e, Unauthenticated):
                sight.token = self._service.accounts.id_of(bearer(request))
            await self._service.witness.saw(sight, e)
            raise
        except Exception:
            await self._service.witness.saw(sight, _mistake(request_id))
            raise
        if route.action is not None:
            await self._service.witness.saw(sight, None)
        return response

    async def _handle(self, route: Route, request: Request, request_id: str, sight: Sight) -> Response:
        sight.machine = request.path_params.get("name")
        sight.notes |= of_path(request.path_params)
        caller = None
        if route.scope is not None:
            caller = await admit(self._service, request, sight, route.scope, owner_only=route.owner_only, of_machines=route.of_machines)
        elif route.action is not None:  # sign-up, log-in; to look at what everybody may see is cheap, and how one knows that the server lives
            self._service.accounts.throttle.count_stranger(sight.address)
        given: dict[str, Any] = {}
        if route.keyed:
            check_key(request.headers.get("idempotency-key"))
        if route.query is not None:
            given["query"] = decode_query(route.query, query_values(request))
        if route.body is not None:
            given["body"] = await self._body(route, route.body, request)
            if route.scope is not None:  # its body took its time, and the token may be good no longer
                caller = await identify(self._service, request)
                allow(caller, route.scope, owner_only=route.owner_only, of_machines=route.of_machines)
        made = route.handler(Call(self._service, request, caller, request_id, sight), **given)
        found = await made if inspect.isawaitable(made) else made
        if route.action is not None:
            sight.notes |= of_answer(found)
            sight.machine = sight.machine or sight.notes.pop("machine_name", None)
        response = found if isinstance(found, Response) else await departing(self._service.departures, found)
        if route.confidential:
            response.headers["Cache-Control"] = "no-store"
        return response

    async def _body(self, route: Route, cls: type, request: Request) -> Any:
        settings = self._service.settings
        bytes_max = min(settings.body_bytes_max, settings.stranger_body_bytes_max) if route.scope is None else settings.body_bytes_max
        with self._service.arrivals.new() as arrival:
            body = await read_body(request, settings, arrival, bytes_max)
            return decode(cls, body) if body.strip() or route.body_required else cls()


def _mistake(request_id: str) -> EverforgeError:
    return EverforgeError(f"a mistake of the server's; its log tells more of request {request_id}")


async def _headers_of(response: StreamingResponse) -> Response:
    """Without its body, which is begun once so that it can clean up behind itself."""
    body = response.body_iterator
    await anext(aiter(body), None)
    if isinstance(body, AsyncGenerator):
        await body.aclose()
    bare = Response(status_code=response.status_code, background=response.background)
    bare.raw_headers = response.raw_headers
    return bare
