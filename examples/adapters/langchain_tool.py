"""LangChain: a tool with which a model runs Python in a machine that remembers.

pip install everforge langchain langchain-openai, and with a server running and a key of the model's provider in the environment:

    from langchain.agents import create_agent
    agent = create_agent("openai:gpt-5", tools=[python_tool(Everforge().create())])
"""

import base64
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from everforge import Machine


def python_tool(machine: Machine) -> BaseTool:
    def run_python(code: str) -> list[dict[str, Any]]:
        """Run Python in a live session: variables, imports and files stay between calls. The last expression is shown, as in a notebook."""
        result = machine.run(code, timeout_seconds=60)
        text = result.text[-20_000:] or "done, nothing was shown"  # a model pays for every word; errors are at the end
        if not result.ok:
            raise ToolException(text)  # the traceback, as a message with status "error": the model repairs its code and calls again
        pictures = [base64.b64encode(shown.png).decode() for shown in result.displays[-3:] if shown.png]
        return [{"type": "text", "text": text}, *({"type": "image", "base64": png, "mime_type": "image/png"} for png in pictures)]

    return StructuredTool.from_function(run_python, handle_tool_error=True)
