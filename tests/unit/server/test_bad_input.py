"""Bad bodies and queries, to every route that takes one: refused in one sentence that names what is wrong, with nothing done. Made from the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from everforge.machines.requests import NewMachine
from everforge.machines.settings import MachineSettings
from everforge.server.app import DOORS, SOCKETS
from everforge.server.bounds import bounds
from everforge.server.openapi import document
from everforge.server.settings import ServerSettings
from kit.operations import Operation, operations
from kit.service import service

DOCUMENT = document(DOORS, SOCKETS, bounds(ServerSettings(), MachineSettings()))
OPERATIONS = list(operations(DOCUMENT))
WITH_BODY = [operation for operation in OPERATIONS if operation.example is not None]
WITH_QUERY = [operation for operation in OPERATIONS if any(p["in"] == "query" for p in operation.spec["parameters"])]
KEYED = [operation for operation in OPERATIONS if any(p["name"] == "Idempotency-Key" for p in operation.spec["parameters"])]
VALUES = {"name": "tried", "seq": "0", "call": "0", "snapshot": "before", "id": "t" + "z" * 11, "account": "nobody", "path": "file.txt"}
HUGE = 10**400


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    async with service() as running, httpx2.AsyncClient(base_url=running.url, headers=running.headers) as client:
        await running.machines.create(NewMachine(name="tried"))
        yield client


async def refused(
    client: httpx2.AsyncClient, operation: Operation, body: bytes | None = None, *, field: str = "", query: str = "", **headers: str
) -> None:
    response = await client.request(
        operation.method,
        operation.url(VALUES) + query,
        content=body,
        headers=[(name.encode(), value.encode("latin-1")) for name, value in {"Content-Type": "application/json", **headers}.items()],
    )
    told = f"{operation.id} {body!r:.200} {query}: {response.status_code} {response.text[:300]}"
    assert response.status_code == 400, told
    found = response.json()
    assert found["code"] == "InvalidInput", told
    assert field in found["message"], told
    assert "\n" not in found["message"], told
    assert len(found["message"]) < 600, told


def fields(operation: Operation) -> dict[str, Any]:
    """Of the body, with their schemas."""
    schema = operation.spec["requestBody"]["content"]["application/json"]["schema"]
    return DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["properties"]


@pytest.mark.parametrize("operation", WITH_BODY, ids=lambda operation: operation.id)
async def test_bodies_that_are_no_objects_are_refused(client: httpx2.AsyncClient, operation: Operation) -> None:
    for body in (b"[]", b"5", b'"text"', b"{", b"\xff\xfe", b'{"a"', b"{}{}", b"nonsense", b"[" * 10_000, b'{"\\ud800": 1}'):
        await refused(client, operation, body)


@pytest.mark.parametrize("operation", WITH_BODY, ids=lambda operation: operation.id)
async def test_fields_that_nobody_knows_are_refused_by_name(client: httpx2.AsyncClient, operation: Operation) -> None:
    await refused(client, operation, json.dumps({**operation.example, "colour": "red"}).encode(), field="colour")
    await refused(client, operation, json.dumps({**operation.example, "x" * 5_000: 1}).encode(), field="xxx")


@pytest.mark.parametrize("operation", WITH_BODY, ids=lambda operation: operation.id)
async def test_values_of_another_kind_are_refused_by_the_name_of_their_field(client: httpx2.AsyncClient, operation: Operation) -> None:
    for name, schema in fields(operation).items():
        kinds = {branch.get("type", "object") for branch in schema.get("anyOf", [schema])}
        if set(schema) <= {"default", "title"}:
            continue  # takes anything
        wrong: list[Any] = [["list"]] if "array" not in kinds else [{"an": "object"}, [5]]
        wrong += [5, True] if not kinds & {"integer", "number", "boolean"} else ["text"] if "string" not in kinds else []
        lowest = min((branch.get("minimum", 0) for branch in schema.get("anyOf", [schema])), default=0)
        wrong += [HUGE, lowest - 1] if kinds & {"integer", "number"} else []
        for value in wrong:
            await refused(client, operation, json.dumps({**operation.example, name: value}).encode(), field=name)
        if kinds & {"integer", "number"}:
            for text in (b"NaN", b"Infinity", b"-Infinity", b"1e999"):
                body = json.dumps({**operation.example, name: "HERE"}).encode().replace(b'"HERE"', text)
                await refused(client, operation, body, field=name if text == b"1e999" else "")


@pytest.mark.parametrize("operation", [o for o in WITH_BODY if o.spec["requestBody"]["required"]], ids=lambda operation: operation.id)
async def test_a_body_that_is_needed_is_asked_for(client: httpx2.AsyncClient, operation: Operation) -> None:
    await refused(client, operation, b"")
    await refused(client, operation, b"null")


@pytest.mark.parametrize("operation", WITH_QUERY, ids=lambda operation: operation.id)
async def test_bad_queries_are_refused_by_name(client: httpx2.AsyncClient, operation: Operation) -> None:
    await refused(client, operation, query="?colour=red", field="colour")
    for parameter in operation.spec["parameters"]:
        schema = parameter["schema"]
        if parameter["in"] != "query" or "string" in str(schema):
            continue
        name = parameter["name"]
        for value in ("text", "", "1.5", "NaN", "9" * 5_000, "-99"):
            await refused(client, operation, query=f"?{name}={value}", field=name)


@pytest.mark.parametrize("operation", KEYED, ids=lambda operation: operation.id)
async def test_keys_that_are_none_are_refused(client: httpx2.AsyncClient, operation: Operation) -> None:
    body = json.dumps(operation.example).encode()
    for key in ("", "x" * 256, "a\tb", "caf\xe9", "\xa0"):
        await refused(client, operation, body, field="key", **{"Idempotency-Key": key})


@pytest.mark.parametrize("operation", KEYED, ids=lambda operation: operation.id)
async def test_a_key_that_comes_again_with_another_request_is_refused(client: httpx2.AsyncClient, operation: Operation) -> None:
    first = await client.request(operation.method, operation.url(VALUES), json=operation.example, headers={"Idempotency-Key": "again"})
    again = await client.request(operation.method, operation.url(VALUES), json=operation.example, headers={"Idempotency-Key": "again"})
    assert (first.status_code, again.json()) == (200, first.json())
    other = json.loads(json.dumps(operation.example).replace("demo", "other").replace("6 * 7", "7 * 6").replace('"count": 1', '"count": 2'))
    assert other != operation.example
    refused = await client.request(operation.method, operation.url(VALUES), json=other, headers={"Idempotency-Key": "again"})
    assert (refused.status_code, refused.json()["code"]) == (409, "KeyReused")


@pytest.mark.parametrize("text", ["-1", "+1", "1.0", "one", "%D9%A3", "%C2%B2", "1%20", "0x1", "1_0", "9" * 19])
async def test_numbers_in_an_address_are_plain_digits(client: httpx2.AsyncClient, text: str) -> None:
    await client.post("/v1/machine/tried/exec", json={"instruction": {"code": "1"}})
    for path in (f"exec/{text}", f"exec/{text}/result", f"exec/{text}/stream-result"):
        answer = await client.get(f"/v1/machine/tried/{path}")
        assert (answer.status_code, answer.json()["code"]) == (400, "InvalidInput")
    for path in (f"exec/0/calls/{text}", f"exec/{text}/calls/0"):
        answer = await client.post(f"/v1/machine/tried/{path}", json={"value": 1})
        assert (answer.status_code, answer.json()["code"]) == (400, "InvalidInput")
    assert (await client.get("/v1/machine/tried/exec/000")).json()["instruction_seq"] == 0


@pytest.mark.parametrize("accept", ["application/x-ndjson", "text/event-stream", "application/json"])
@pytest.mark.parametrize(("query", "field"), [("limit=0", "limit"), ("limit=-5", "limit"), ("after=-2", "after"), (f"after={2**70}", "after")])
async def test_a_bad_stream_is_refused_before_it_begins(client: httpx2.AsyncClient, accept: str, query: str, field: str) -> None:
    [tape] = [operation for operation in OPERATIONS if operation.path.endswith("/tape")]
    await refused(client, tape, query=f"?{query}", field=field, Accept=accept)
