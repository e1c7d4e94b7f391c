"""The prompt: Python over several lines, history, completion from the live machine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import ColorDepth
from pygments.lexers.python import PythonLexer  # pyright: ignore[reportMissingTypeStubs]

from everforge import AsyncMachine
from everforge.wire.errors import EverforgeError

from .blocks import INDENT, ends, indentation
from .commands import COMMANDS
from .history import KeptHistory, history_path

COMPLETE_SECONDS = 3.0  # after which a person would rather type it
MATCHES_MAX = 500


class ThrownAway(Exception):
    """Ctrl-C at the prompt. Not a KeyboardInterrupt, which asyncio lets through whatever waits for it."""


class MachineCompleter(Completer):
    def __init__(self, machine: AsyncMachine) -> None:
        self._machine = machine

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> list[Completion]:
        return []

    async def get_completions_async(self, document: Document, complete_event: CompleteEvent) -> AsyncGenerator[Completion]:
        theirs = await self._ask(document)  # first: all that there is appears at once, and nothing is inserted behind what was typed meanwhile
        before = document.text_before_cursor
        if before.startswith("%") and " " not in before:
            for name in COMMANDS:
                if name.startswith(before):
                    yield Completion(name, -len(before))
        for completion in theirs:
            yield completion

    async def _ask(self, document: Document) -> list[Completion]:
        try:
            async with asyncio.timeout(COMPLETE_SECONDS):
                found = await self._machine.complete(document.text, document.cursor_position)
        except (EverforgeError, TimeoutError):
            return []  # no completion is no reason to stop typing
        start = min(found.start, document.cursor_position) - document.cursor_position
        return [Completion(match, start) for match in found.matches[:MATCHES_MAX] if match.isprintable()]


def bindings() -> KeyBindings:
    keys = KeyBindings()
    editing = has_focus(DEFAULT_BUFFER)

    @keys.add("enter", filter=editing)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        document = buffer.document
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None  # taken as it stands
        elif document.on_last_line and (not document.text.strip() or ends(document.text)):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n" + indentation(document.current_line_before_cursor))

    @keys.add("escape", "enter", filter=editing)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("tab", filter=editing)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        line = buffer.document.current_line_before_cursor
        if not line.strip():
            buffer.insert_text(" " * (INDENT - len(line) % INDENT))
        elif buffer.complete_state is not None:
            buffer.complete_next()
        else:
            buffer.start_completion(insert_common_part=True)

    return keys


def is_typing(prompt: PromptSession[str]) -> bool:
    return prompt.app.is_running and not prompt.app.is_done


def interrupted_behind(prompt: PromptSession[str]) -> bool:
    """Was Ctrl-C pressed right behind Enter, before the terminal made a signal of it?

    It is meant for what was just entered, and drops what was typed in between, as at any terminal. What came behind it is for the next prompt."""
    keys = [*get_typeahead(prompt.input), *prompt.input.read_keys()]
    last = max((i for i, pressed in enumerate(keys) if pressed.key == Keys.ControlC), default=-1)
    store_typeahead(prompt.input, keys[last + 1 :])
    return last >= 0


def make_prompt(machine: AsyncMachine, base_url: str) -> PromptSession[str]:
    return PromptSession(
        ">>> ",
        multiline=True,
        prompt_continuation="... ",
        lexer=PygmentsLexer(PythonLexer),
        history=KeptHistory(history_path(base_url)),
        auto_suggest=AutoSuggestFromHistory(),
        enable_history_search=True,
        completer=MachineCompleter(machine),
        complete_while_typing=False,
        key_bindings=bindings(),
        interrupt_exception=ThrownAway,
        color_depth=ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None,
    )
