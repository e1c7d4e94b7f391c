"""The adapters in examples/, each driven by its own framework, with a model that does as it is told: no key, no network.

A driver takes a machine and what the model wants to run, call after call. It gives what the model then reads of each call.
"""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from anthropic import Anthropic
from anthropic.types import ToolParam, ToolResultBlockParam
from langchain_core.messages import ToolMessage
from openai import OpenAI
from openai.types.responses import FunctionToolParam, ResponseInputItemParam
from pydantic import TypeAdapter
from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.messages import BinaryContent
from pydantic_ai.models.function import AgentInfo, FunctionModel

from everforge import AsyncEverforge, Everforge

ADAPTERS = Path(__file__).parents[2] / "examples" / "adapters"
LAST = "That is all."


@dataclass
class Seen:
    text: str
    failed: bool
    pictures: list[bytes] = field(default_factory=list[bytes])


@dataclass(frozen=True)
class Access:
    token: str
    url: str
    machine: str


def adapter(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ADAPTERS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- Pydantic AI -------------------------------------------------------------------------------------------------------------------------------


def pydantic_ai(access: Access, codes: Sequence[str]) -> list[Seen]:
    wanted: Iterator[str] = iter(codes)

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        [tool] = info.function_tools
        assert tool.parameters_json_schema["required"] == ["code"]
        code = next(wanted, None)
        return ModelResponse(parts=[TextPart(LAST) if code is None else ToolCallPart(tool.name, {"code": code})])

    async def talk() -> list[ModelMessage]:
        async with AsyncEverforge(access.token, access.url) as client:
            toolset = adapter("pydantic_ai_toolset").python_toolset(client.machine(access.machine))
            done = await Agent(FunctionModel(model), toolsets=[toolset]).run("Begin.")
            assert done.output == LAST
            return done.all_messages()

    seen: list[Seen] = []
    for part in (part for message in asyncio.run(talk()) for part in message.parts):
        if isinstance(part, ToolReturnPart):
            seen.append(Seen(str(part.content), failed=part.outcome == "retried"))
        elif isinstance(part, UserPromptPart) and seen:
            seen[-1].pictures += [shown.data for shown in part.content if isinstance(shown, BinaryContent)]
    return seen


# --- LangChain ---------------------------------------------------------------------------------------------------------------------------------


def langchain(access: Access, codes: Sequence[str]) -> list[Seen]:
    with Everforge(access.token, access.url) as client:
        tool = adapter("langchain_tool").python_tool(client.machine(access.machine))
        assert list(tool.args) == ["code"]
        calls = [{"type": "tool_call", "id": f"call_{number}", "name": tool.name, "args": {"code": code}} for number, code in enumerate(codes)]
        return [_of_langchain(tool.invoke(call)) for call in calls]


def _of_langchain(message: ToolMessage) -> Seen:
    blocks = message.content_blocks  # as its models read them, whatever they were written as
    pictures = [base64.b64decode(block["base64"]) for block in blocks if block["type"] == "image" and "base64" in block]
    return Seen("".join(block["text"] for block in blocks if block["type"] == "text"), failed=message.status == "error", pictures=pictures)


# --- OpenAI ------------------------------------------------------------------------------------------------------------------------------------


def openai(access: Access, codes: Sequence[str], turns_max: int = 20) -> list[Seen]:
    tool, requests = adapter("openai_tool"), list[Any]()
    TypeAdapter(FunctionToolParam).validate_python(tool.TOOL)

    def answer(number: int) -> dict[str, Any]:
        if number < len(codes):
            arguments = json.dumps({"code": codes[number]})
            said = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": tool.TOOL["name"], "arguments": arguments}
        else:
            said = {"type": "message", "id": "msg", "role": "assistant", "content": [{"type": "output_text", "text": LAST, "annotations": []}]}
        return {
            "id": f"resp_{number}", "object": "response", "created_at": 0, "model": "told", "status": "completed", "parallel_tool_calls": True,
            "tool_choice": "auto", "tools": [], "output": [{**said, "status": "completed"}],
        }  # fmt: skip

    with Everforge(access.token, access.url) as machines, OpenAI(api_key="none", http_client=_told(requests, answer)) as client:
        assert tool.ask(client, "told", machines.machine(access.machine), "Begin.", turns_max) == LAST
    items = requests[-1]["input"]
    for item in items:
        TypeAdapter(ResponseInputItemParam).validate_python(item)
    asked, outputs = ([item for item in items if item.get("type") == kind] for kind in ("function_call", "function_call_output"))
    assert [item["call_id"] for item in asked] == [item["call_id"] for item in outputs] == [f"call_{number}" for number in range(len(codes))]
    return [_of_openai(item["output"]) for item in outputs]


def _of_openai(output: list[dict[str, str]]) -> Seen:
    text = "".join(part["text"] for part in output if part["type"] == "input_text")
    urls = [part["image_url"] for part in output if part["type"] == "input_image"]
    return Seen(text, failed="Traceback" in text, pictures=[base64.b64decode(url.removeprefix("data:image/png;base64,")) for url in urls])


# --- Anthropic ---------------------------------------------------------------------------------------------------------------------------------


def anthropic(access: Access, codes: Sequence[str], turns_max: int = 20) -> list[Seen]:
    tool, requests = adapter("anthropic_tool"), list[Any]()
    TypeAdapter(ToolParam).validate_python(tool.TOOL)

    def answer(number: int) -> dict[str, Any]:
        if number < len(codes):
            said = {"type": "tool_use", "id": f"toolu_{number}", "name": tool.TOOL["name"], "input": {"code": codes[number]}}
        else:
            said = {"type": "text", "text": LAST}
        return {
            "id": f"msg_{number}", "type": "message", "role": "assistant", "model": "told", "content": [said], "stop_sequence": None,
            "stop_reason": "tool_use" if number < len(codes) else "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip

    with Everforge(access.token, access.url) as machines, Anthropic(api_key="none", http_client=_told(requests, answer)) as client:
        assert tool.ask(client, "told", machines.machine(access.machine), "Begin.", turns_max) == LAST
    blocks = [block for message in requests[-1]["messages"][1:] for block in message["content"]]
    asked, results = ([block for block in blocks if block["type"] == kind] for kind in ("tool_use", "tool_result"))
    assert [block["id"] for block in asked] == [block["tool_use_id"] for block in results] == [f"toolu_{number}" for number in range(len(codes))]
    for result in results:
        TypeAdapter(ToolResultBlockParam).validate_python(result)
    return [_of_anthropic(result) for result in results]


def _of_anthropic(result: dict[str, Any]) -> Seen:
    pictures = [base64.b64decode(block["source"]["data"]) for block in result["content"] if block["type"] == "image"]
    return Seen("".join(block["text"] for block in result["content"] if block["type"] == "text"), failed=result["is_error"], pictures=pictures)


def _told(requests: list[Any], answer: Callable[[int], dict[str, Any]]) -> httpx2.Client:
    """A provider that is nowhere: each request is written down, and answered by its number."""

    def respond(request: httpx2.Request) -> httpx2.Response:
        requests.append(json.loads(request.content))
        return httpx2.Response(200, json=answer(len(requests) - 1))

    return httpx2.Client(transport=httpx2.MockTransport(respond))


DRIVERS: dict[str, Callable[[Access, Sequence[str]], list[Seen]]] = {
    "pydantic-ai": pydantic_ai, "langchain": langchain, "openai": openai, "anthropic": anthropic,
}  # fmt: skip
