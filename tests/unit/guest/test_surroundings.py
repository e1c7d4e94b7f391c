"""What belongs to one instruction alone."""

from __future__ import annotations

import pytest

from everforge.wire.messages import Interrupt, Outputs, Run

from .driver import Done, Guest


def run_with(guest: Guest, code: str, env: dict[str, str]) -> Done:
    number = guest.begin("0")
    guest.finish(number)
    guest.send(Run(number + 1, code, env))
    guest._next = number + 2
    return guest.finish(number + 1)


LOOK = "import os, subprocess; (os.environ.get('WHO'), subprocess.run('echo $WHO', shell=True, capture_output=True, text=True).stdout)"


def test_variables_of_an_instruction_are_there_for_it_and_for_what_it_starts(guest: Guest) -> None:
    assert run_with(guest, LOOK, {"WHO": "one"}).end.value == "('one', 'one\\n')"
    assert guest.value(LOOK) == "(None, '\\n')"


@pytest.mark.parametrize(
    "code", ["1/0", "raise SystemExit", "def f(:", "del os.environ['WHO']", "os.environ['WHO'] = 'changed'", "os.environ.clear()"]
)
def test_they_are_put_back_whatever_happened(fresh: Guest, code: str) -> None:
    fresh.run("import os; os.environ['WHO'] = 'before'")
    run_with(fresh, code, {"WHO": "one", "OTHER": "two"})
    assert fresh.value("os.environ.get('WHO'), os.environ.get('OTHER')") == "('before', None)"


def test_they_are_put_back_after_an_interrupt(fresh: Guest) -> None:
    fresh.send(Run(0, "print('here')\nimport time; time.sleep(60)", {"WHO": "one"}))
    fresh.wait_for(Outputs)
    fresh.send(Interrupt(0))
    assert fresh.finish(0).end.end == "interrupted"
    fresh._next = 1
    assert fresh.value("import os; os.environ.get('WHO') is None") == "True"


def test_a_replaced_environ_does_not_keep_them(fresh: Guest) -> None:
    run_with(fresh, "import os; kept, os.environ = os.environ, {}", {"WHO": "one"})
    assert fresh.value("kept.get('WHO') is None") == "True"
