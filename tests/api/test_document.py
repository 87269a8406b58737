"""The OpenAPI document says what the API does: schemathesis asks everything that it describes, and believes nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import schemathesis
from schemathesis import Config, engine
from schemathesis.engine import events
from schemathesis.openapi import from_dict

from api.openapi import document
from tests.api.memory import installation

DOCUMENT: dict[str, Any] = document(installation().app)
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
WITH_KEY = [
    name for name in OPERATIONS if name.endswith(("/operations", "/redrive", "/backfill", "letters/discard"))
]
"""Idempotency-Key is required but for a dry run, which no schema of a header can say."""
WITH_RANGE = ["GET /v1/upcoming"]
"""`until` must lie after `from`, which no schema of one name can say."""
TAKEN = ["2xx", "401", "403", "404", "409", "412", "422"]
"""What a body may meet that fits its schema: 422 where a schema cannot tell, as of a cron expression."""
REFUSED = ["400", "401", "403", "404", "405", "406", "409", "412", "413", "414", "415", "422", "428", "431"]
ENDLESS = "stream_changes"
"""Its answer goes on for a quarter of an hour: `tests/api/test_live.py` asks for it."""
OPAQUE = ("cursor", "Minutebook-After", "If-Match", "wait")
"""What an outsider cannot make up, and what a test need not wait for."""


@schemathesis.hook
def before_call(context: object, case: schemathesis.Case, kwargs: object) -> None:
    """Of a request that is to be taken: without what nobody could make up."""
    if case.meta is not None and not case.meta.generation.mode.is_negative:
        for given in (case.query, case.headers):
            for name in OPAQUE:
                given.pop(name, None)


def asked(examples: int, *phases: str) -> Iterator[str]:
    """What schemathesis finds wrong, asking `examples` times for each operation and kind of input."""
    checks = {
        "not_a_server_error": {"expected-statuses": ["2xx", "3xx", "4xx", "503"]},
        "positive_data_acceptance": {"expected-statuses": TAKEN},
        "negative_data_rejection": {"expected-statuses": REFUSED},
    }
    odd: list[dict[str, Any]] = [
        {
            "include-name": "POST /v1/jobs/batch",  # items are refused one by one; a job may be called batch
            "checks": checks
            | {
                "negative_data_rejection": {"expected-statuses": [*REFUSED, "200"]},
                "allow_header_conformance": {"enabled": False},
            },
        }
    ]
    odd += [
        {
            "include-name": name,
            "checks": checks | {"positive_data_acceptance": {"expected-statuses": [*TAKEN, "400"]}},
        }
        for name in (*WITH_KEY, *WITH_RANGE)
    ]
    config = Config.from_dict(
        {
            "seed": 4711,
            "generation": {"max-examples": examples, "database": "none"},
            "headers": {"Authorization": "Bearer key-admin"},
            "checks": checks,
            "operations": odd,
            "phases": {
                phase: {"enabled": phase in phases}
                for phase in ("examples", "coverage", "fuzzing", "stateful")
            },
        }
    )
    schema = from_dict(DOCUMENT, config=config)
    schema.app = installation().app
    for event in engine.from_schema(schema.exclude(operation_id=ENDLESS)).execute():
        if isinstance(event, events.FatalError):
            raise event.exception
        if isinstance(event, events.ScenarioFinished):
            yield from _faults(event)


def _faults(event: events.ScenarioFinished) -> Iterator[str]:
    for case_id, checks in event.recorder.checks.items():
        for check in checks:
            if check.failure_info is not None:
                failure = check.failure_info.failure
                case = event.recorder.cases[case_id].value
                yield f"{failure.operation}: {failure.title}: {failure.message}\n{case.as_curl_command()}"


def test_app_is_as_the_document_says() -> None:
    """The long run: `make proof-long`."""
    assert list(asked(1, "examples", "coverage", "fuzzing")) == []


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_has_examples_and_a_list_of_errors(name: str) -> None:
    operation = OPERATIONS[name]
    for content in operation.get("requestBody", {}).get("content", {}).values():
        check(content["schema"], content["example"])
    for status, answer in operation["responses"].items():
        for kind, content in answer.get("content", {}).items():
            if kind == "application/json":
                assert content["examples"], (name, status)
    for parameter in operation["parameters"]:
        assert parameter["description" if parameter["in"] != "path" else "example"], (name, parameter["name"])
    refusals = {int(status) for status in operation["responses"] if int(status) >= 400}
    if operation["security"]:
        assert {400, 401, 403, 406, 413, 414, 429, 431, 500, 503} <= refusals, name


def test_every_example_of_an_answer_fits_its_schema() -> None:
    for name, example in DOCUMENT["components"]["examples"].items():
        check({"$ref": f"#/components/schemas/{name}"}, example["value"])


def check(schema: dict[str, Any], value: Any) -> None:
    """Raises ValidationError."""
    whole = schema | {"components": DOCUMENT["components"]}
    jsonschema.Draft202012Validator(whole).validate(value)


if __name__ == "__main__":
    found = list(asked(200, "examples", "coverage", "fuzzing", "stateful"))
    print(*found, f"{len(found)} faults", sep="\n\n")
    sys.exit(bool(found))
