"""The command lines of the three languages, by name, as tests run them."""

from __future__ import annotations

import functools

import pytest

from kit.cargo import needs_cargo
from kit.commandlines import PYTHON, Program
from kit.sdks import rust_binary, typescript_sdk

OTHERS = ("typescript", pytest.param("rust", marks=needs_cargo))
others = pytest.mark.parametrize("language", OTHERS)
all_three = pytest.mark.parametrize("language", ["python", *OTHERS])


@functools.cache
def program(language: str) -> Program:
    if language == "python":
        return PYTHON
    if language == "rust":
        return Program([rust_binary()])
    sdk = typescript_sdk()
    return Program([sdk.node, sdk.command])
