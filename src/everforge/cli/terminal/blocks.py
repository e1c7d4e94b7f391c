"""Where a piece of Python ends: what Enter at the prompt asks, and what cuts a stream of lines into instructions. No I/O."""

from __future__ import annotations

import ast
import codeop
import re
import warnings
from collections.abc import Iterable, Iterator
from typing import Literal

INDENT = 4
State = Literal["incomplete", "open", "complete"]

_COMPOUND = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.TryStar,
    ast.Match,
)  # fmt: skip
_GOES_ON = re.compile(r"[ \t)\]}]|(elif|else|except|finally|case)\b")
_LEAVES = re.compile(r"(return|raise|break|continue|pass)\b")


def state(code: str) -> State:
    """ "open": it could be run, and could go on, as a loop whose body may have more lines."""
    if code.startswith("%%"):
        return "open"  # a cell of IPython's: whatever stands in it
    if code.startswith(("%", "!", "?")) or code.rstrip().endswith("?"):
        return "complete"
    compiler = codeop.CommandCompiler()
    compiler.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    last = _last_line(code)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if compiler(code, "<prompt>", "exec") is None:
                return "incomplete"
            body = ast.parse(code).body
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        # Wrong, or of a younger Python than ours: the machine's own says which. A block that was begun may be finished before.
        return "incomplete" if last.rstrip().endswith((":", "\\")) else "open" if last[:1].isspace() else "complete"
    return "open" if body and isinstance(body[-1], _COMPOUND) else "complete"


def ends(code: str) -> bool:
    """Does Enter at the end of this run it? A block ends with an empty line."""
    found = state(code)
    if found == "open":
        return not code.rsplit("\n", 1)[-1].strip() or ("\n" not in code and not code.startswith("%%"))
    return found == "complete"


def indentation(line: str) -> str:
    """Of the line behind this one."""
    depth = len(line) - len(line.lstrip(" "))
    words = line.split("#")[0].strip()
    if words.endswith(":"):
        depth += INDENT
    elif _LEAVES.match(words):
        depth -= INDENT
    return " " * max(0, depth)


def blocks(lines: Iterable[str]) -> Iterator[str]:
    """Instructions, each as soon as it cannot go on any more."""
    code = ""
    for line in lines:
        fresh = line.strip() and not line.startswith("#") and not _GOES_ON.match(line)
        if fresh and _says_something(code) and not code.startswith("%%") and state(code) == "open":
            yield code
            code = ""
        if code or line.strip():
            code += line
        if _says_something(code) and state(code) == "complete":
            yield code
            code = ""
    if _says_something(code):
        yield code


def _says_something(code: str) -> bool:
    return any(line.strip() and not line.startswith("#") for line in code.split("\n"))


def _last_line(code: str) -> str:
    return next((line for line in reversed(code.split("\n")) if line.strip()), "")
