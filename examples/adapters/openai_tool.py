"""OpenAI's Responses API: a tool with which a model runs Python in a machine that remembers.

pip install everforge openai, and with a server running and OPENAI_API_KEY set:
python examples/adapters/openai_tool.py gpt-5 'What is the 1000th prime?'
"""

import base64
import json
import sys
from typing import Any

from openai import OpenAI
from openai.types.responses import FunctionToolParam, ResponseFunctionToolCall, ResponseInputItemParam

from everforge import Everforge, Machine

TOOL: FunctionToolParam = {
    "type": "function",
    "name": "run_python",
    "description": "Run Python in a live session: variables, imports and files stay between calls. The last expression is shown, as in a notebook.",
    "parameters": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"], "additionalProperties": False},
    "strict": True,
}


def handle(machine: Machine, call: ResponseFunctionToolCall) -> ResponseInputItemParam:
    """The code's own error is part of the answer: the model reads the traceback, repairs its code and calls again."""
    result = machine.run(json.loads(call.arguments)["code"], timeout_seconds=60)
    text = result.text[-20_000:] or "done, nothing was shown"  # a model pays for every word; errors are at the end
    pictures = [f"data:image/png;base64,{base64.b64encode(shown.png).decode()}" for shown in result.displays[-3:] if shown.png]
    return {
        "type": "function_call_output",
        "call_id": call.call_id,
        "output": [{"type": "input_text", "text": text}, *({"type": "input_image", "image_url": url} for url in pictures)],
    }


def ask(client: OpenAI, model: str, machine: Machine, question: str, turns_max: int = 20) -> str:
    items: list[Any] = [{"role": "user", "content": question}]
    for _ in range(turns_max):
        response = client.responses.create(model=model, input=items, tools=[TOOL])
        items += [item.to_dict() for item in response.output]  # what it said and asked for, as it was
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response.output_text
        items += [handle(machine, call) for call in calls]
    raise RuntimeError(f"The model did not come to an end in {turns_max} turns; machine {machine.name} has what it did so far.")


if __name__ == "__main__":
    print(ask(OpenAI(), sys.argv[1], Everforge().create(tags={"example": "openai"}), sys.argv[2]))
