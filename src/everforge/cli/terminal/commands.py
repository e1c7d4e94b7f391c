"""Words of the prompt's own. All others that begin with % are IPython's, and go to the machine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from everforge import AsyncMachine

HELP = """\
Enter runs a line; a block ends with an empty line, or Alt-Enter. Tab completes from the live machine.
Ctrl-C interrupts what runs; a second one kills what still runs, with the machine's variables; a third stops waiting.
Ctrl-D leaves; the machine stays.
%machine           what this machine is, and how it does
%fork [NAME]       a copy of it, memory and files
%snapshot [NAME]   a point to go back to
%rollback [POINT]  back to a snapshot, or to right after an instruction by its number
%files [FOLDER]    what lies in its home folder
%help              this"""


async def _help(machine: AsyncMachine, word: str | None) -> str:
    return HELP


async def _machine(machine: AsyncMachine, word: str | None) -> str:
    info = await machine.info()
    shown = {
        "name": info.name, "state": info.state, "image": info.image, "memory": f"{info.memory_bytes >> 20} of {info.memory_mb} MB",
        "instructions": info.next_instruction, "position": info.position, "created": info.created_at, "error": info.error,
    }  # fmt: skip
    return "\n".join(f"{name:<13}{value}" for name, value in shown.items() if value is not None)


async def _fork(machine: AsyncMachine, word: str | None) -> str:
    made = await machine.fork(word)
    return f"{made.name}: enter it with `everforge repl {made.name}`"


async def _snapshot(machine: AsyncMachine, word: str | None) -> str:
    made = await machine.snapshot(word)
    return f"{made.name or made.id}: come back with %rollback {made.name or made.id}"


async def _rollback(machine: AsyncMachine, word: str | None) -> str:
    back = await machine.rollback(int(word) if word is not None and word.isdecimal() else word)
    undo = f"; %rollback {back.undo} undoes it" if back.undo else ""
    return f"back at {back.snapshot.name or back.snapshot.id}{undo}"


async def _files(machine: AsyncMachine, word: str | None) -> str:
    lines = [f"{file.size_bytes:>12}  {file.name}{'/' if file.kind == 'folder' else ''}" async for file in machine.files.list(word or "")]
    return "\n".join(lines) or "nothing"


COMMANDS: dict[str, Callable[[AsyncMachine, str | None], Awaitable[str]]] = {
    "%files": _files, "%fork": _fork, "%help": _help, "%machine": _machine, "%rollback": _rollback, "%snapshot": _snapshot,
}  # fmt: skip


def command_of(text: str) -> tuple[Callable[[AsyncMachine, str | None], Awaitable[str]], str | None] | None:
    """With its one word, if it has one; None for what the machine is to run."""
    words = text.split()
    found = COMMANDS.get(words[0]) if words and len(words) <= 2 else None
    return None if found is None else (found, words[1] if len(words) == 2 else None)
