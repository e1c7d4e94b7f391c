"""At a terminal: tables with a heading, questions before what cannot be undone, and colours only where they are wanted."""

from __future__ import annotations

import os
import sys
from typing import Any

import pexpect

from kit.service import Running

from .conftest import env_of


def at_terminal(server: Running, *words: str, **env: str) -> Any:
    settings = {**os.environ, "TERM": "xterm", "NO_COLOR": "", **env_of(server), **env}
    return pexpect.spawn(sys.executable, ["-m", "everforge", *words], env=settings, encoding="utf-8", timeout=60, dimensions=(24, 200))  # pyright: ignore[reportArgumentType]


def test_deleting_asks_first_and_lists_have_headings(server: Running) -> None:
    at_terminal(server, "machine", "new", "--name", "kept").expect(pexpect.EOF)
    no = at_terminal(server, "machine", "delete", "kept")
    no.expect("Delete kept for ever")
    no.sendline("n")
    no.expect(pexpect.EOF)
    no.close()
    assert no.exitstatus == 130
    listed = at_terminal(server, "machine", "list")
    listed.expect(r"\x1b\[1mNAME .*TAGS\x1b\[0m\r\nkept +ready")
    listed.expect(pexpect.EOF)
    plain = at_terminal(server, "machine", "list", NO_COLOR="1")
    plain.expect(pexpect.EOF)
    assert plain.before.startswith("NAME ")
    assert "\x1b" not in plain.before
    yes = at_terminal(server, "machine", "delete", "kept")
    yes.expect("Delete kept for ever")
    yes.sendline("y")
    yes.expect("deleted kept")
    yes.expect(pexpect.EOF)
