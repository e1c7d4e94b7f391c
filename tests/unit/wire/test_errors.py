from __future__ import annotations

from collections.abc import Iterator

from everforge.wire.errors import ClientError, EverforgeError, MachineFailed, ProtocolError, Refused, Uncertain

BRANCHES = (Refused, MachineFailed, Uncertain, ProtocolError, ClientError)


def all_errors(cls: type[EverforgeError] = EverforgeError) -> Iterator[type[EverforgeError]]:
    yield cls
    for sub in cls.__subclasses__():
        yield from all_errors(sub)


def test_every_error_has_a_code_of_its_own_and_is_of_one_branch() -> None:
    errors = [cls for cls in all_errors() if cls.__module__ == "everforge.wire.errors"]
    assert len({cls.code for cls in errors}) == len(errors)
    for cls in errors:
        assert cls.code in ("Internal", cls.__name__)
        assert 400 <= cls.http_status < 600
        assert cls.retry in ("never", "later", "now")
        assert cls is EverforgeError or sum(issubclass(cls, branch) for branch in BRANCHES) == 1


def test_an_error_carries_its_message_and_details() -> None:
    error = Refused("no", nearest=[1, 2])
    assert str(error) == error.message == "no"
    assert error.details == {"nearest": [1, 2]}
