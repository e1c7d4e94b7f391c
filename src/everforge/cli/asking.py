"""Questions to the person at the terminal; elsewhere lines of stdin, or a refusal that says which option to give."""

from __future__ import annotations

import sys

import typer

from .tables import on_terminal

LINE_CHARACTERS_MAX = 4096  # of what is asked for here


def ask(question: str, option: str) -> str:
    if not (on_terminal(sys.stdin) and on_terminal(sys.stderr)):
        raise typer.BadParameter("it is needed, and there is no terminal to ask at", param_hint=option)
    return str(typer.prompt(question, err=True)).strip()


def ask_secret(question: str, option: str) -> str:
    """Without echo; or the first line of stdin, when that is not a terminal."""
    if on_terminal(sys.stdin):
        from getpass import getpass

        found = getpass(f"{question}: ").strip()
    else:
        found = "" if sys.stdin is None else sys.stdin.readline(LINE_CHARACTERS_MAX).strip()  # pyright: ignore[reportUnnecessaryComparison]
    if not found:
        raise typer.BadParameter("none was given", param_hint=option)
    return found
