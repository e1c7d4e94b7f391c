"""Anthropic's Messages API: a tool with which a model runs Python in a machine that remembers.

pip install everforge anthropic, and with a server running and ANTHROPIC_API_KEY set:
python examples/adapters/anthropic_tool.py claude-sonnet-4-5 'What is the 1000th prime?'
"""

import base64
import sys

from anthropic import Anthropic
from anthropic.types import ImageBlockParam, MessageParam, ToolParam, ToolResultBlockParam, ToolUseBlock

from everforge import Everforge, Machine

TOOL: ToolParam = {
    "name": "run_python",
    "description": "Run Python in a live session: variables, imports and files stay between calls. The last expression is shown, as in a notebook.",
    "input_schema": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"], "additionalProperties": False},
    "strict": True,
}


def handle(machine: Machine, call: ToolUseBlock) -> ToolResultBlockParam:
    """The code's own error is part of the answer: the model reads the traceback, repairs its code and calls again."""
    result = machine.run(str(call.input["code"]), timeout_seconds=60)
    text = result.text[-20_000:] or "done, nothing was shown"  # a model pays for every word; errors are at the end
    pictures: list[ImageBlockParam] = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(shown.png).decode()}}
        for shown in result.displays[-3:]
        if shown.png
    ]
    return {"type": "tool_result", "tool_use_id": call.id, "is_error": not result.ok, "content": [{"type": "text", "text": text}, *pictures]}


def ask(client: Anthropic, model: str, machine: Machine, question: str, turns_max: int = 20) -> str:
    messages: list[MessageParam] = [{"role": "user", "content": question}]
    for _ in range(turns_max):
        message = client.messages.create(model=model, max_tokens=8192, messages=messages, tools=[TOOL])
        if message.stop_reason != "tool_use":
            return "".join(block.text for block in message.content if block.type == "text")
        messages.append({"role": "assistant", "content": message.content})
        messages.append({"role": "user", "content": [handle(machine, block) for block in message.content if block.type == "tool_use"]})
    raise RuntimeError(f"The model did not come to an end in {turns_max} turns; machine {machine.name} has what it did so far.")


if __name__ == "__main__":
    print(ask(Anthropic(), sys.argv[1], Everforge().create(tags={"example": "anthropic"}), sys.argv[2]))
