"""Completion by a live interpreter, which must hang nothing."""

from __future__ import annotations

from everforge.wire.messages import Complete, Completed, Outputs

from .driver import Guest


def complete(guest: Guest, code: str, cursor: int | None = None, token: int = 7) -> Completed:
    guest.send(Complete(token, code, len(code) if cursor is None else cursor))
    return guest.wait_for(Completed, lambda c: c.token == token)


def test_names_and_attributes_of_live_objects_are_found(guest: Guest) -> None:
    guest.run("class Dog:\n    bark_loud = 1\n    bark_low = 2\nrex = Dog(); some_long_name = 1")
    found = complete(guest, "x = some_lo")
    assert (found.matches, found.start, found.end, found.busy) == (["some_long_name"], 4, 11, False)
    found = complete(guest, "rex.bark_ + 1", 9)
    assert ([m.rpartition(".")[2] for m in found.matches], found.busy) == (["bark_loud", "bark_low"], False)
    assert complete(guest, "nothing_like_it_").matches == []
    assert complete(guest, "x = '''ü𝄞''' + some_lo").start == 15


def test_there_is_a_limit_to_what_is_found(guest: Guest) -> None:
    guest.run("globals().update({'many_' + 'ü' * 50 + str(i): i for i in range(3000)})")
    found = complete(guest, "many_")
    assert (0 < len(found.matches) <= 500, found.busy) == (True, False)


def test_a_busy_interpreter_is_not_asked(guest: Guest) -> None:
    number = guest.begin("print('here')\nimport time; time.sleep(0.5)")
    guest.wait_for(Outputs)
    assert complete(guest, "pri").busy
    assert guest.finish(number).end.end == "value"
    assert "print" in complete(guest, "pri").matches[0]


SLOW = """
class Slow:
    def __dir__(self):
        import time
        print('asked')
        time.sleep(60)
slow = Slow()
"""


def test_an_object_that_takes_its_time_makes_nobody_wait(fresh: Guest) -> None:
    fresh.run(SLOW)
    assert complete(fresh, "slow.").busy  # after two seconds
    assert fresh.value("1 + 1") == "2"


def test_an_instruction_comes_before_a_completion(fresh: Guest) -> None:
    fresh.run(SLOW)
    fresh.send(Complete(7, "slow.", 5))
    fresh.wait_for(Outputs)
    done = fresh.run("1 + 1")
    assert (done.end.end, done.end.value) == ("value", "2")
    assert any(isinstance(m, Completed) and m.busy for m in done.said)


def test_an_interpreter_that_dies_of_it_is_replaced(fresh: Guest) -> None:
    fresh.run("class Bad:\n    def __dir__(self):\n        import os; os._exit(3)\nbad = Bad()")
    assert complete(fresh, "bad.").busy
    assert fresh.value("1 + 1") == "2"
