"""Routes as data: from a handler's signature come the decoding of its request, its documentation and the tests that try every route on everybody."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from everforge.wire import api
from everforge.wire.api import Scope
from everforge.wire.errors import EverforgeError

Handler = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    method: str
    path: str
    handler: Handler
    scope: Scope | None  # None: everybody may, without a token
    errors: tuple[type[EverforgeError], ...] = ()  # beyond those that any request may meet
    body: type | None = None
    body_required: bool = False
    query: type | None = None
    answer: type | None = None
    media: tuple[str, ...] = ("application/json",)  # of the answer
    upload: bool = False  # its body is read by the handler, as it comes
    keyed: bool = False  # an Idempotency-Key makes it safe to repeat
    owner_only: bool = False
    confidential: bool = False  # its answer holds a token or a secret that is shown this once: nothing on the way is to keep it
    action: str | None = None  # what the audit log calls it; None: it only reads, and its calls are no entries
    example: Any = None  # of the body

    @property
    def of_machines(self) -> bool:
        """A token that is for some machines alone may use it."""
        return self.path.startswith("/v1/machine/") or self.path in ("/v1/whoami", "/v1/account")

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.handler) or "").partition("\n")[0]


@dataclass(frozen=True, slots=True)
class Routes:
    """Of one dialect or noun; collected by the application."""

    tag: str
    routes: list[Route] = field(default_factory=list[Route])

    def add(self, method: str, path: str, *, scope: Scope | None, **more: Any) -> Callable[[Handler], Handler]:
        """`body` and `query` of the handler's parameters, and its answer, are the types that they are annotated with.

        Whatever is not a GET is taken to change something, and is in the audit log under its `action`; `action=None` says that it only reads.
        """

        def register(handler: Handler) -> Handler:
            hints = get_type_hints(handler)
            parameters = inspect.signature(handler).parameters
            answer = hints.get("return")
            self.routes.append(
                Route(
                    method=method,
                    path=path,
                    handler=handler,
                    scope=scope,
                    body=_plain(hints.get("body")),
                    body_required="body" in parameters and parameters["body"].default is inspect.Parameter.empty,
                    query=hints.get("query"),
                    action=more.pop("action", None if method == "GET" else f"{self.tag}.{handler.__name__}"),
                    answer=answer if isinstance(answer, type) and answer.__module__.startswith(f"{api.__name__}.") else more.pop("answer", None),
                    **more,
                )
            )
            return handler

        return register


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketRoute:
    """A WebSocket: `open` sees the connection before it is accepted, may refuse it, and returns what to do with it then."""

    path: str
    scopes: tuple[Scope, ...]  # all of them are needed
    open: Callable[..., Awaitable[Callable[..., Awaitable[None]]]]

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.open) or "").partition("\n")[0]


def _plain(hint: Any) -> type | None:
    """Without the `| None` of a body that may be left out."""
    if hint is None or isinstance(hint, type):
        return hint
    return next(arg for arg in hint.__args__ if arg is not type(None))
