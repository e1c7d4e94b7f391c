"""An examination as a person reads it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..tables import plain
from .attacks import GROUPS

if TYPE_CHECKING:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from .attack import Group
    from .examination import Examination
    from .trial import Tried

WIDTH_ELSEWHERE = 120  # where there is no terminal to fill
WIDTH_MAX = 140  # longer lines are hard to read
INTRODUCTION = "Attacks that harm nobody, made inside a new machine: what was tried, and what came of it."
REMARK = "This is evidence, and no proof: nobody can try everything. Run it again whenever you like."


def show(found: Examination) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    console.width = min(console.width, WIDTH_MAX) if sys.stdout.isatty() else WIDTH_ELSEWHERE
    console.print()
    console.print(INTRODUCTION, style="dim")
    for group in GROUPS:
        tried = found.of(group)
        console.print()
        console.print(_answer(group, tried))
        console.print(_attacks(tried))
    console.print()
    console.print("What it sees, beside what your computer is", style="bold")
    console.print(_views(found))
    console.print()
    for line, style in _verdict(found):
        console.print(line, style=style)


def _answer(group: Group, tried: list[Tried]) -> Text:
    """The question, and what its attacks say to it."""
    from rich.text import Text

    question = Text(group.question + " ", style="bold")
    if all(one.outcome.held for one in tried):
        word, _, rest = group.answer.partition(" ")
        return question.append(word, style="bold green").append(" " + rest, style="not bold green")
    through = any(one.outcome.made and not one.outcome.held for one in tried)
    return question.append("YES. See what got through:" if through else "Not known:", style="bold red")


def _attacks(tried: list[Tried]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column(width=3)
    table.add_column(ratio=5)
    table.add_column(ratio=6)
    table.expand = True
    for one in tried:
        mark = Text(" ok", style="green") if one.outcome.held else Text("BAD" if one.outcome.made else "  ?", style="bold red")
        table.add_row(mark, Text(one.attack.tried), Text(plain(one.outcome.happened), style="" if one.outcome.held else "red"))
    return table


def _views(found: Examination) -> Padding:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
    for name in ("", "in the machine", "on your computer"):
        table.add_column(name)
    for row in found.views:
        table.add_row(row.what, Text(plain(row.inside)), Text(plain(row.outside)))
    return Padding(table, (0, 0, 0, 4))  # all of it, so that lines that do not fit are indented, too


def _verdict(found: Examination) -> list[tuple[str, str]]:
    through = [one for one in found.tried if one.outcome.made and not one.outcome.held]
    unknown = [one for one in found.tried if not one.outcome.made]
    took = f"{len(found.tried)} attacks in {found.seconds:.0f} seconds"
    if through:
        lines = [(f"{len(through)} of {took} got through. Do not run code that you do not trust here.", "bold red")]
    elif unknown:
        lines = [(f"{len(unknown)} of {took} could not be made: the question stays open. The others failed.", "bold yellow")]
    else:
        lines = [(f"Nothing got out: {took}, and every one of them failed.", "bold green")]
    where = f"on the server at {found.url}; it is deleted" if found.running else "on a server of its own; both are gone again"
    lines.append((f"They were made in a new machine {where}. {REMARK}", "dim"))
    if not found.local:
        lines.append(("That server is on another computer: what is said of yours here holds for the one that you sit at.", "yellow"))
    return lines
