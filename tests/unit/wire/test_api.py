"""The bodies of requests and answers, whose modules are one namespace to whoever uses them."""

from __future__ import annotations

import inspect
import pkgutil
from collections import Counter
from importlib import import_module

from everforge.images.guestcode import guest_files
from everforge.wire import api

MODULES = [import_module(f"{api.__name__}.{found.name}") for found in pkgutil.iter_modules(api.__path__)]


def bodies(module: object) -> list[str]:
    return [name for name, found in inspect.getmembers(module, inspect.isclass) if found.__module__ == getattr(module, "__name__", None)]


def test_every_body_has_a_name_of_its_own_and_is_found_by_it() -> None:
    names = Counter(name for module in MODULES for name in bodies(module))
    assert [name for name, count in names.items() if count > 1] == []
    assert [name for name in names if not hasattr(api, name)] == []


def test_guests_do_not_carry_what_they_do_not_speak() -> None:
    """Each change of it would be a new image."""
    assert [name for name in guest_files() if "api" in name.split("/")] == []
