"""Pydantic AI: a toolset with which a model runs Python in a machine that remembers.

pip install everforge 'pydantic-ai-slim[openai]', and with a server running and a key of the model's provider in the environment:
python examples/adapters/pydantic_ai_toolset.py openai:gpt-5 'What is the 1000th prime?'
"""

import asyncio
import sys
from typing import Any

from pydantic_ai import Agent, BinaryContent, FunctionToolset, ModelRetry, ToolReturn

from everforge import AsyncEverforge, AsyncMachine


def python_toolset(machine: AsyncMachine) -> FunctionToolset[Any]:
    async def run_python(code: str) -> ToolReturn:
        """Run Python in a live session: variables, imports and files stay between calls. The last expression is shown, as in a notebook."""
        result = await machine.run(code, timeout_seconds=60)
        text = result.text[-20_000:] or "done, nothing was shown"  # a model pays for every word; errors are at the end
        if not result.ok:
            raise ModelRetry(text)  # the traceback: the model repairs its code and calls again
        return ToolReturn(text, content=[BinaryContent(shown.png, media_type="image/png") for shown in result.displays[-3:] if shown.png] or None)

    return FunctionToolset([run_python], max_retries=5, sequential=True)  # one session: calls at once would only queue


async def main(model: str, question: str) -> None:
    async with AsyncEverforge() as client:
        machine = await client.create(tags={"example": "pydantic-ai"})
        print((await Agent(model, toolsets=[python_toolset(machine)]).run(question)).output)
        print("goes on in:", machine.name)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
