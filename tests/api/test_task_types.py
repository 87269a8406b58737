"""Declared types of tasks: payloads checked when a job is created, in bounded time."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import httpx
import msgspec
import pytest
from msgspec import Meta
from pydantic import BaseModel, Field

from api import payload_check
from api.payload_check import FAULTS_MAX, STEPS_MAX, PayloadCheck
from minutebook.client.models import FieldError
from minutebook.domain.commands import DeclareTask
from minutebook.wire.topics import partition_of
from minutebook.worker.payload import schema_of
from tests.api.conftest import Callers
from tests.api.memory import PARTITIONS, Installation
from tests.api.runs import come, fail


class Letter(msgspec.Struct, forbid_unknown_fields=True):
    to: str
    copies: Annotated[int, Meta(ge=1, le=9)] = 1


class Parcel(BaseModel, extra="forbid"):
    code: str = Field(pattern=r"^[A-Z]{2}\d+$", max_length=8)
    kinds: set[int] = set()
    size: Literal["s", "m"] | None = None
    weights: list[float] = Field(default=[], max_length=2)


class Sum(msgspec.Struct, tag=True):
    left: Expression
    right: Expression


class Difference(msgspec.Struct, tag=True):
    left: Expression
    right: Expression


Expression = Sum | Difference | int


def declare(world: Installation, name: str, schema: str, number: int = 1) -> None:
    command = DeclareTask(
        name=name,
        command_id=f"d{number}",
        issued_at=world.clock.now(),
        actor="worker:w",
        payload_schema=schema,
    )
    world.log._decide(partition_of(f"task::{name}", PARTITIONS), command)


def pointers(answer: httpx.Response) -> list[str]:
    return [error["pointer"] for error in answer.json()["errors"]]


# -- over HTTP


async def test_payload_that_does_not_fit_is_refused_with_pointers(
    api: httpx.AsyncClient, world: Installation
) -> None:
    declare(world, "send", schema_of(Letter))
    sent = len(world.log.sent)
    answer = await api.post("/v1/jobs", json={"task": "send", "payload": {"copies": 0, "secret": "hunter2"}})
    assert (answer.status_code, answer.json()["code"]) == (422, "bad-payload")
    assert sorted(pointers(answer)) == ["/payload/copies", "/payload/secret", "/payload/to"]
    assert "hunter2" not in answer.text
    assert len(world.log.sent) == sent
    good = await api.post("/v1/jobs", json={"task": "send", "payload": {"to": "a"}})
    assert good.status_code == 201
    assert (await api.post("/v1/jobs", json={"task": "other", "payload": 1})).status_code == 201


async def test_batch_refuses_the_bad_item_alone(api: httpx.AsyncClient, world: Installation) -> None:
    declare(world, "send", schema_of(Letter))
    jobs = [{"task": "send", "payload": payload} for payload in ({"to": "a"}, 5, {"to": "b"})]
    answer = await api.post("/v1/jobs/batch", json={"jobs": jobs}, headers={"idempotency-key": "k"})
    items = answer.json()["items"]
    assert [item["status"] for item in items] == [201, 422, 201]
    assert items[1]["problem"]["errors"] == [{"pointer": "/payload", "detail": "must be of type object"}]


async def test_newest_type_counts_and_a_repeat_is_answered_as_before(
    api: httpx.AsyncClient, world: Installation
) -> None:
    headers, body = {"idempotency-key": "k"}, {"task": "send", "payload": {"n": 1}}
    first = await api.post("/v1/jobs", json=body, headers=headers)
    declare(world, "send", schema_of(Letter))
    assert (await api.post("/v1/jobs", json=body)).status_code == 422
    again = await api.post("/v1/jobs", json=body, headers=headers)
    assert (again.status_code, again.json()) == (201, first.json())
    declare(world, "send", '{"required":["n"]}', number=2)
    assert (await api.post("/v1/jobs", json=body)).status_code == 201
    assert (await api.post("/v1/jobs", json={"task": "send", "payload": {}})).status_code == 422
    declare(world, "send", "", number=3)
    assert (await api.post("/v1/jobs", json=body)).status_code == 201


async def test_edited_payload_of_a_redrive_is_checked(callers: Callers, world: Installation) -> None:
    operator = callers["operator"]
    job = (await operator.post("/v1/jobs", json={"id": "a", "task": "send", "payload": 1})).json()
    name = f"{job['id']}:{world.clock.now()}"
    come(world)
    fail(world, name)
    declare(world, "send", schema_of(Letter))
    path = f"/v1/executions/{name}/redrive"
    answer = await operator.post(path, json={"payload": {"to": 1}})
    assert (answer.status_code, pointers(answer)) == (422, ["/payload/to"])
    assert (await operator.post(path, json={"payload": {"to": "a"}})).status_code == 200


async def test_tasks_are_listed_in_pages_and_shown(callers: Callers, world: Installation) -> None:
    for name in ("c", "a", "b"):
        declare(world, name, schema_of(Letter) if name == "a" else "")
    viewer = callers["viewer"]
    first = (await viewer.get("/v1/tasks", params={"limit": 2})).json()
    assert [(item["name"], item["typed"]) for item in first["items"]] == [("a", True), ("b", False)]
    rest = (await viewer.get("/v1/tasks", params={"cursor": first["next_cursor"]})).json()
    assert [item["name"] for item in rest["items"]] == ["c"]
    assert rest["next_cursor"] is None
    shown = (await viewer.get("/v1/tasks/a")).json()
    assert (shown["version"], shown["declared_by"]) == (1, "worker:w")
    assert shown["payload_schema"] == msgspec.json.decode(schema_of(Letter))
    assert (await viewer.get("/v1/tasks/c")).json()["payload_schema"] is None
    for name in ("nothing", "a%20b"):
        assert (await viewer.get(f"/v1/tasks/{name}")).status_code == 404


# -- the check itself


@pytest.mark.parametrize(
    ("kind", "payload", "expected"),
    [
        (Letter, {"to": "a", "copies": 9}, {}),
        (Letter, {"to": "a", "copies": 10}, {"/payload/copies": "must be at most 9"}),
        (Letter, {"to": "a", "copies": True}, {"/payload/copies": "must be of type integer"}),
        (Letter | None, None, {}),
        (list[Letter], [{"to": "a"}, {"to": 1}], {"/payload/1/to": "must be of type string"}),
        (dict[str, Letter], {"a/b~": {}}, {"/payload/a~1b~0/to": "is required"}),
        (Parcel, {"code": "AB1", "kinds": [1, 2], "size": "m", "weights": [1, 2.5]}, {}),
        (Parcel, {"code": "ab1"}, {"/payload/code": r'must match "^[A-Z]{2}\\d+$"'}),
        (Parcel, {"code": "AB1234567"}, {"/payload/code": "must have at most 8 characters"}),
        (Parcel, {"code": "A1"} | {"code": "AB1", "kinds": [1, 1]}, {"/payload/kinds/1": "is there before"}),
        (Parcel, {"code": "AB1", "weights": [1, 2, 3]}, {"/payload/weights": "must have at most 2 items"}),
        (Parcel, {"code": "AB1", "size": 7}, {"/payload/size": "fits none of the types"}),
        (Expression, {"type": "Sum", "left": 1, "right": {"type": "Sum", "left": 1, "right": 2}}, {}),
        (Expression, "x", {"/payload": "fits none of the types"}),
    ],
)
def test_faults(kind: Any, payload: Any, expected: dict[str, str]) -> None:
    found = {
        fault.pointer: fault.detail
        for fault in PayloadCheck(schema_of(kind)).faults(msgspec.json.encode(payload))
    }
    assert found.keys() == expected.keys()
    for pointer, detail in expected.items():
        assert found[pointer].startswith(detail)


def test_faults_are_bounded() -> None:
    check = PayloadCheck(schema_of(list[Letter]))
    assert len(check.faults(msgspec.json.encode([1] * 1_000))) == FAULTS_MAX


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "https://example.org/schema.json"},
        {"$ref": "#/$defs/missing"},
        {"type": 5, "required": 7, "minimum": "x"},
        {"pattern": "(?=a)b"},
        {"not": {}},
    ],
)
def test_schema_that_cannot_be_used_refuses_nothing(schema: dict[str, Any]) -> None:
    for payload in (b'"text"', b'{"a": 1}', b"5"):
        assert PayloadCheck(msgspec.json.encode(schema).decode()).faults(payload) == []


def nested(depth: int) -> Any:
    found: Any = "no number"
    for _ in range(depth):
        found = {"type": "Difference", "left": found, "right": found}
        if depth > 12:
            found["right"] = 1
    return found


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        (schema_of(Expression), nested(12)),
        (schema_of(Expression), nested(30)),
        ('{"items": {"type": "integer"}}', [1] * 100_000),
        (schema_of(list[Letter]), [{"to": "a"}] * 10_000),
        (json.dumps({"enum": list(range(10_000))}), 10_001),
        (json.dumps({"items": {"enum": list(range(5_000))}}), [5_000] * 5_000),
        ('{"uniqueItems": true}', [[]] * 50_000),
        ('{"pattern": "^(a+)+$"}', "a" * 100_000 + "b"),
        ('{"patternProperties": {"^(a+)+$": {}}, "additionalProperties": false}', {"a" * 50 + "b": 1}),
    ],
)
def test_steps_of_a_check_are_bounded(schema: str, payload: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check of unbounded cost would not come back within the test's own timeout."""
    steps = 0
    size = payload_check._size

    def counted(value: Any) -> int:
        nonlocal steps
        steps += 1
        return size(value)

    monkeypatch.setattr(payload_check, "_size", counted)
    check = PayloadCheck(schema)
    encoded = msgspec.json.encode(payload)
    for _ in range(3):
        faults = check.faults(encoded)
        assert all(isinstance(fault, FieldError) for fault in faults)
    assert steps <= 2 * 3 * (STEPS_MAX + 1)
