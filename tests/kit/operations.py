"""Every route of a server as its OpenAPI document tells of it, and a good request to each: what tests of all routes are generated from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

_PARAMETER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    spec: Mapping[str, Any]

    @property
    def id(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def scope(self) -> str | None:
        return self.spec.get("x-scope")

    @property
    def owner_only(self) -> bool:
        return bool(self.spec.get("x-owner-only"))

    @property
    def of_a_machine(self) -> bool:
        return self.path.startswith("/v1/machine/{name}")

    @property
    def example(self) -> Any:
        """A good JSON body; None where there is none."""
        content = self.spec.get("requestBody", {}).get("content", {})
        return content.get("application/json", {}).get("example", {}) if "application/json" in content else None

    @property
    def uploads(self) -> bool:
        return self.spec.get("requestBody") is not None and self.example is None

    def url(self, values: Mapping[str, str]) -> str:
        """With values for what the path leaves open; for a parameter that nobody has thought of, something."""
        return _PARAMETER.sub(lambda found: quote(values.get(found[1], "something"), safe=""), self.path)

    def body(self) -> dict[str, Any]:
        """As arguments of an HTTP client."""
        if self.uploads:
            return {"content": b"bytes"}
        return {} if self.example is None else {"json": self.example}


def operations(document: Mapping[str, Any]) -> Iterator[Operation]:
    for path, methods in document["paths"].items():
        for method, spec in methods.items():
            yield Operation(method.upper(), path, spec)
