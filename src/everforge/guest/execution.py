"""One instruction in the shell's namespace: compile, run, render. Plain Python goes straight to the compiler; magics take IPython's way first."""

from __future__ import annotations

import ast
import contextlib
import inspect
import linecache
import re
import time
from collections import deque
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

from . import results
from .results import Rendered
from .shell import MachineShell

COMPILE_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
SOURCES_MAX = 5_000  # instructions whose source lines can still be shown in tracebacks and by inspect
PLAIN_TYPES = frozenset({int, float, bool, str, bytes, complex, list, tuple, dict, set, frozenset, range, type(None)})
_FIRST_WORD = re.compile(r"\s*([A-Za-z_]\w*)")


class Steps(NamedTuple):
    """`body` is run, then `last` is evaluated; the value is that of `last`."""

    body: CodeType | None
    last: CodeType | None
    quiet: bool  # a semicolon at the end: the value is not wanted


class Execution:
    def __init__(self, shell: MachineShell) -> None:
        self.shell: Any = shell  # IPython is not typed
        self.result_bytes_max = 8 * 1024 * 1024
        self.runtime_us = 0
        self.waited_seconds: Callable[[], float] = lambda: 0.0  # of the running instruction, for answers: it does not run meanwhile
        self.rendering = False  # the code has run; its value is being turned into text
        self._own_cleanups = len(self.shell.input_transformer_manager.cleanup_transforms)
        self._line_magics: dict[str, Any] = self.shell.magics_manager.magics["line"]
        # Where IPython keeps `ast_transformers` and the like: asked for by their names they would each take a way through several functions.
        self._traits: dict[str, Any] = self.shell._trait_values
        self._traits["ast_transformers"] = self.shell.ast_transformers
        self._sources: deque[str] = deque()
        self._callbacks: dict[str, list[Any]] = self.shell.events.callbacks
        self._callbacks["pre_execute"].clear()  # it only forgets which warnings were shown, which we do not want at every instruction
        formatters: dict[str, Any] = self.shell.display_formatter.formatters
        self._printers: list[dict[Any, Any]] = [f.type_printers for mime, f in formatters.items() if mime != "text/plain"]

    def run(self, number: int, code: str) -> Rendered:
        """Raises whatever the user's code raises. `runtime_us` is set in either case."""
        name = f"{results.SOURCE_PREFIX}{number}>"
        self.runtime_us = 0
        self.rendering = False
        self._trigger("pre_execute")
        self._trigger("pre_run_cell", code)
        try:
            steps = self._compile(code, name)
            value = self._execute(steps)
            rendered = Rendered(None, None, None) if value is None or steps.quiet else self._render(value)
        finally:
            self._trigger("post_execute")
            self._trigger("post_run_cell", code)
        return rendered

    def tidy(self, number: int) -> None:
        """After an instruction, when nobody waits."""
        self.shell._trait_values["execution_count"] = number + 2  # nobody observes it, and the trait's own way is slow
        if len(self._sources) > SOURCES_MAX:
            linecache.cache.pop(self._sources.popleft(), None)

    def forget_values(self) -> None:
        self.shell.user_ns.update({"_": "", "__": "", "___": ""})

    # --- compile -------------------------------------------------------------------------------------------------------------------

    def _compile(self, code: str, name: str) -> Steps:
        compiler = self.shell.compile
        flags = compiler.flags | COMPILE_FLAGS
        if not self._needs_ipython(code):
            self._remember(name, code)
            if "\n" not in code:  # likely an expression, which needs no tree
                with contextlib.suppress(SyntaxError, ValueError):
                    return Steps(None, compile(code, name, "eval", flags, True), False)
            try:
                tree = _parse(code, name, flags)
            except (SyntaxError, ValueError) as e:
                transformed = self._transform(code, e)
            else:
                return self._split(tree, name, flags, code)
        else:
            transformed = self.shell.transform_cell(code)
        self._remember(name, transformed)
        tree = _parse(transformed, name, flags)
        return self._split(self.shell.transform_ast(tree), name, flags, transformed)

    def _transform(self, code: str, error: Exception) -> str:
        """IPython's syntax turned into Python's; what it leaves as it was is the user's mistake."""
        transformed = self.shell.transform_cell(code)
        if transformed.rstrip("\n") == code.rstrip("\n"):
            raise error
        return transformed

    def _needs_ipython(self, code: str) -> bool:
        """Valid Python that IPython reads in its own way: a magic's name alone on a line, or transformers that the user registered."""
        traits = self._traits
        cleanups = traits["input_transformer_manager"].cleanup_transforms
        if self.shell.input_transformers_post or traits["ast_transformers"] or len(cleanups) != self._own_cleanups:
            return True
        if "\n" in code.strip():
            return False
        word = _FIRST_WORD.match(code)
        if word is None:
            return False
        found = word.group(1)
        return found in self._line_magics and found not in self.shell.user_ns

    def _split(self, tree: ast.Module, name: str, flags: int, source: str) -> Steps:
        last: CodeType | None = None
        if tree.body and isinstance(final := tree.body[-1], ast.Expr) and self.shell.ast_node_interactivity != "none":
            tree.body.pop()
            last = compile(ast.Expression(final.value), name, "eval", flags, True)
        if not tree.body:
            return Steps(None, last, source.rstrip().endswith(";"))
        body: CodeType = compile(tree, name, "exec", flags, True)
        self._keep_future_flags(body)
        return Steps(body, last, source.rstrip().endswith(";"))

    def _keep_future_flags(self, code: CodeType) -> None:
        import __future__

        for feature in __future__.all_feature_names:
            flag = getattr(__future__, feature).compiler_flag
            if code.co_flags & flag:
                self.shell.compile.flags |= flag

    def _remember(self, name: str, source: str) -> None:
        """So that tracebacks and inspect show source lines. No modification time: linecache then never looks for a file."""
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        self._sources.append(name)

    # --- run -----------------------------------------------------------------------------------------------------------------------

    def _execute(self, steps: Steps) -> Any:
        started = time.perf_counter()
        try:
            if steps.body is not None:
                self._evaluate(steps.body)
            return None if steps.last is None else self._evaluate(steps.last)
        finally:
            self.runtime_us = max(0, int((time.perf_counter() - started - self.waited_seconds()) * 1_000_000))

    def _evaluate(self, code: CodeType) -> Any:
        namespace = self.shell.user_ns
        value = eval(code, self.shell.user_global_ns, namespace)
        if code.co_flags & inspect.CO_COROUTINE:
            value = self.shell.loop_runner(value)
        return value

    # --- render --------------------------------------------------------------------------------------------------------------------

    def _render(self, value: Any) -> Rendered:
        namespace = self.shell.user_ns
        self.rendering = True
        namespace["___"], namespace["__"], namespace["_"] = namespace.get("__"), namespace.get("_"), value
        text = repr(value)
        data = self._rich(value)
        if data is not None:
            data = {"text/plain": text, **data}
        return results.fit(text, data, self.result_bytes_max)

    def _rich(self, value: Any) -> dict[str, Any] | None:
        if type(value) in PLAIN_TYPES and not [printers for printers in self._printers if type(value) in printers]:
            return None
        data, _metadata = self.shell.display_formatter.format(value, exclude={"text/plain"})
        return results.plain_data(data) if data else None

    def _trigger(self, event: str, code: str | None = None) -> None:
        if self._callbacks[event]:
            self.shell.events.trigger(event, *([] if code is None else [_Info(code)]))


def _parse(code: str, name: str, flags: int) -> ast.Module:
    tree = compile(code, name, "exec", flags | ast.PyCF_ONLY_AST, True)
    assert isinstance(tree, ast.Module)
    return tree


class _Info(NamedTuple):
    """What IPython's callbacks look at."""

    raw_cell: str
    store_history: bool = False
    silent: bool = False
    shell_futures: bool = True
    cell_id: str | None = None
    success: bool = True
    result: Any = None
    error_in_exec: Any = None
    error_before_exec: Any = None
