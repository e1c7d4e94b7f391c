"""The OpenAPI document against the server: requests made from it, good and bad, get what it says they get, and never a mistake of the server's."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    negative_data_rejection,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from everforge.machines.settings import MachineSettings
from everforge.server.app import DOORS, SOCKETS
from everforge.server.bounds import bounds
from everforge.server.openapi import document
from everforge.server.settings import ServerSettings
from kit.background import in_background
from kit.length import LONG, TIMEOUT_FACTOR, length
from kit.operations import operations
from kit.service import Running

GOOD = [not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance, response_schema_conformance]
BAD = [*GOOD, negative_data_rejection]
DOCUMENT = document(DOORS, SOCKETS, bounds(ServerSettings(), MachineSettings()))
_numbers = itertools.count()


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with in_background() as running:
        yield running


@pytest.fixture(scope="module")
def schema(running: Running) -> Any:
    return schemathesis.openapi.from_url(f"{running.url}/openapi.json")


def prepare(running: Running) -> dict[str, Any]:
    """Something of everything that a path can name."""
    name = f"tried-{next(_numbers)}"
    with httpx2.Client(base_url=running.url, headers=running.headers) as client:
        client.post("/v1/machine/new", json={"name": name}).raise_for_status()
        client.post(f"/v1/machine/{name}/exec", json={"instruction": {"code": "print(1)\n2"}}).raise_for_status()
        client.get(f"/v1/machine/{name}/exec/0/result").raise_for_status()
        client.post(f"/v1/machine/{name}/snapshots", json={"name": "before"}).raise_for_status()
    return {"name": name, "seq": 0, "snapshot": "before"}


def tried(examples: int) -> settings:
    return settings(
        max_examples=length(examples, examples * 50), derandomize=not LONG, deadline=None, database=None,
        phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )  # fmt: skip


def can_be_wrong(spec: Any) -> bool:
    """Whether there is anything in it that is not just any text."""
    json_body = "application/json" in spec.get("requestBody", {}).get("content", {})
    return json_body or any(set(parameter["schema"]) - {"type", "minLength"} for parameter in spec.get("parameters", []))


@pytest.mark.timeout(300 * TIMEOUT_FACTOR)
@pytest.mark.parametrize(("path", "method"), [(o.path, o.method) for o in operations(DOCUMENT)])
def test_requests_get_what_the_document_says(running: Running, schema: Any, path: str, method: str) -> None:
    operation = schema[path][method]
    values = {name: value for name, value in prepare(running).items() if f"{{{name}}}" in path}

    def ask(case: Case, checks: list[Any]) -> None:
        case.call_and_validate(headers=running.headers, checks=checks, timeout=20)

    @tried(8)
    @given(operation.as_strategy(GenerationMode.POSITIVE, path_parameters=values))
    def of_something_there(case: Case) -> None:
        ask(case, GOOD)

    @tried(3)
    @given(operation.as_strategy(GenerationMode.POSITIVE))
    def of_anything(case: Case) -> None:
        ask(case, GOOD)

    @tried(8)
    @given(operation.as_strategy(GenerationMode.NEGATIVE))
    def what_is_wrong(case: Case) -> None:
        ask(case, BAD)

    of_something_there()
    of_anything()
    if can_be_wrong(operation.definition.raw):
        what_is_wrong()


def test_the_document_is_openapi(schema: Any) -> None:
    schema.validate()


def test_every_operation_is_described_and_has_a_name_and_an_example_of_its_own() -> None:
    found = list(operations(DOCUMENT))
    assert len({operation.spec["operationId"] for operation in found}) == len(found)
    for operation in found:
        assert operation.spec["summary"], operation.id
        body = operation.spec.get("requestBody", {}).get("content", {}).get("application/json")
        assert body is None or "example" in body, f"{operation.id} has no example of its body"


ERRORS = {
    "POST /v1/machine/new": {"NameTaken", "NoCapacity", "TooMany", "TooLarge", "DiskFull", "KeyReused"},
    "POST /v1/machine/{name}/exec": {"QueueFull", "TooMany", "KeyReused", "MachineBroken", "DiskFull"},
    "GET /v1/machine/{name}/exec/{seq}/result": {"TooManyStreams", "InstructionNotFound"},
    "GET /v1/machine/{name}/exec/{seq}/stream-result": {"TooManyStreams", "InstructionNotFound"},
    "GET /v1/machine/{name}/tape": {"TooManyStreams", "InstructionNotFound"},
    "POST /v1/machine/{name}/fork": {"QueueFull", "NameTaken", "Refused", "NoCapacity"},
    "POST /v1/machine/{name}/hibernate": {"QueueFull", "Refused", "DiskFull", "MachineFailed"},
    "POST /v1/machine/{name}/wake": {"QueueFull", "Refused", "NoCapacity", "MachineBroken"},
    "POST /v1/machine/{name}/reset": {"QueueFull", "Refused", "NoCapacity"},
    "POST /v1/machine/{name}/snapshots": {"QueueFull", "Refused", "NameTaken", "DiskFull"},
    "DELETE /v1/machine/{name}/snapshots/{snapshot}": {"Refused", "SnapshotNotFound"},
    "POST /v1/machine/{name}/rollback": {"QueueFull", "Refused", "PointNotKept", "SnapshotNotFound"},
    "GET /v1/machine/{name}/files/{path}": {"QueueFull", "NoCapacity", "RangeInvalid", "TransferCut"},
    "PUT /v1/machine/{name}/files/{path}": {"QueueFull", "NoCapacity", "DiskFull", "TooLarge", "TooSlow"},
    "PUT /v1/machine/{name}/archive": {"QueueFull", "ArchiveRefused", "DiskFull"},
    "POST /v1/invitations": {"SignupClosed", "TooMany"},
    "POST /v1/tokens": {"TooMany", "Forbidden"},
    "POST /internal/signup": {"SignupClosed", "InvitationInvalid", "TooMany", "TooLarge", "MailFailed"},
}


@pytest.mark.parametrize("id", ERRORS)
def test_the_errors_that_an_operation_can_answer_are_told(id: str) -> None:
    [operation] = [operation for operation in operations(DOCUMENT) if operation.id == id]
    told = {code for response in operation.spec["responses"].values() for code in response["description"].split(", ")}
    assert ERRORS[id] <= told


def test_every_limit_of_a_page_has_its_bounds() -> None:
    for operation in operations(DOCUMENT):
        for parameter in operation.spec["parameters"]:
            if parameter["name"] == "limit":
                schema = next(branch for branch in parameter["schema"].get("anyOf", [parameter["schema"]]) if branch["type"] == "integer")
                assert schema["minimum"] == 1, operation.id
                assert schema["maximum"] == (500 if operation.path.endswith(("/exec", "/audit")) else 1000), operation.id


def test_every_error_is_described_by_the_one_form_of_errors() -> None:
    for operation in operations(DOCUMENT):
        assert "default" not in operation.spec["responses"]  # would allow everything
        for status, response in operation.spec["responses"].items():
            if not status.startswith("2"):
                assert response["content"] == {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}, operation.id
