"""The MCP server itself, the same for every transport: what it offers, and who does it."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from mcp import types
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS
from pydantic import ValidationError

from everforge import AsyncEverforge, EverforgeError, __version__

from . import resources
from .answers import Answer, bad_arguments, refusal
from .callers import Callers, Context
from .calls import Call, Link, Settings
from .clients import Clients
from .conversations import Conversations
from .progress import Progress
from .tools import tools_of

log = logging.getLogger(__name__)

NAME = "everforge"
INSTRUCTIONS = (
    "Live Python machines that remember. run_python runs code in this conversation's own machine: variables, imports and files stay there from call"
    " to call, and for days. Work step by step in it. Figures come back as images. Before something risky take a snapshot_machine or a fork_machine;"
    " rollback_machine goes back. The network is closed but for packages: show_egress_refusals says what was refused and what a person can do."
    " Every answer names its machine: with that name another conversation can go on with it (use_machine)."
)
TOOL_CHARACTERS_MAX = 200  # of a name, when it is said that there is none


class Offer:
    """What is offered to all who come over one transport."""

    def __init__(self, callers: Callers, settings: Settings, link: Link | None = None) -> None:
        self._callers, self._settings = callers, settings
        self._link = link or Link()
        self._clients = Clients()
        self._conversations = Conversations()
        self._tools = tools_of(sharing=settings.share is not None)
        self._listed = [tool.listed() for tool in self._tools.values()]

    async def close(self) -> None:
        """No call that ends from now on was cancelled by its client."""
        self._link.closed = True
        await self._clients.close()

    @asynccontextmanager
    async def _called(self, context: Context) -> AsyncGenerator[Call]:
        caller = await self._callers.of(context)
        async with self._clients.of(caller.access) as held:
            conversation = self._conversations.of(f"{caller.access.base_url}\n{caller.access.token}", caller.conversation, self._settings.machine)
            yield Call(held.client, conversation, self._settings, Progress(partial(_tell, context)), self._link, held.reach)

    @asynccontextmanager
    async def _client(self, context: Context) -> AsyncGenerator[AsyncEverforge]:
        async with self._called(context) as call:
            yield call.client

    # --- tools ---------------------------------------------------------------------------------------------------------------------------------

    async def list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        _only_page(params)
        return types.ListToolsResult(tools=self._listed)

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name[:TOOL_CHARACTERS_MAX]!r}: tools/list has those there are")
        return (await self._answer(context, tool.name, params.arguments or {})).result()

    async def _answer(self, context: Context, name: str, arguments: dict[str, Any]) -> Answer:
        try:
            async with self._called(context) as call, call.progress.beating():
                return await self._tools[name].call(call, arguments)
        except ValidationError as e:
            return bad_arguments(name, e)
        except EverforgeError as e:
            return refusal(e)
        except Exception as e:
            log.exception("the tool %s failed", name)
            raise MCPError(INTERNAL_ERROR, f"the tool {name} failed in a way that nobody foresaw: the log of the MCP server has more") from e

    # --- resources -------------------------------------------------------------------------------------------------------------------------------

    async def list_resources(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        _only_page(params)
        try:
            async with self._client(context) as client:
                return types.ListResourcesResult(resources=await resources.list_resources(client))
        except EverforgeError as e:
            raise resources.protocol_error(e) from e

    async def list_templates(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
        _only_page(params)
        return types.ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)

    async def read_resource(self, context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        try:
            async with self._client(context) as client:
                return types.ReadResourceResult(contents=[await resources.read_resource(client, params.uri)])
        except EverforgeError as e:
            raise resources.protocol_error(e, {"uri": params.uri[: resources.URI_CHARACTERS]}) from e

    async def complete(self, context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Names of machines, where a template wants one. Without a server there are none."""
        names: list[str] = []
        if isinstance(params.ref, types.ResourceTemplateReference) and params.argument.name == "name":
            try:
                async with self._client(context) as client:
                    names = await resources.complete_name(client, params.argument.value)
            except EverforgeError:
                pass
        return types.CompleteResult(completion=types.Completion(values=names, has_more=len(names) == resources.COMPLETIONS_MAX))


def make_server(offer: Offer) -> Server[Any]:
    @asynccontextmanager
    async def lifespan(_: Server[Any]) -> AsyncGenerator[dict[str, Any]]:
        try:
            yield {}
        finally:
            await offer.close()

    return Server(
        NAME,
        version=__version__,
        title="Everforge",
        description="Live Python machines that remember",
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        on_list_tools=offer.list_tools,
        on_call_tool=offer.call_tool,
        on_list_resources=offer.list_resources,
        on_list_resource_templates=offer.list_templates,
        on_read_resource=offer.read_resource,
        on_completion=offer.complete,
    )


def _only_page(params: types.PaginatedRequestParams | None) -> None:
    if params is not None and params.cursor is not None:
        raise MCPError(INVALID_PARAMS, "there is one page only: ask without a cursor")


async def _tell(context: Context, progress: float, message: str | None) -> None:
    """A client that asked for progress; the others hear nothing."""
    await context.session.report_progress(progress, message=message)
