"""Examples of bodies, made from their schemas: a model that is new has one too, and each fits its schema."""

from __future__ import annotations

from typing import Any, Final

_INSTANT: Final = "2026-06-01T07:00:00.000Z"
_JOB: Final = "report-daily"
_BY_NAME: Final[dict[str, Any]] = {
    "actor": "key:4f1c2a90be37d815 via cli from 192.0.2.7",
    "address": "192.0.2.7",
    "api_key": "mb_<key id>_<secret>",
    "attempt": 1,
    "code": "not-found",
    "cron": "0 7 * * MON-FRI",
    "cursor": "c2lnbmVkLXBsYWNl",
    "command_id": "01987a1c-2f60-7cc1-9d0e-3a8c5d1f7b42",
    "detail": "There is no such thing; check the path and the id.",
    "error_type": "TimeoutError",
    "execution_id": f"{_JOB}:1780297200000",
    "id": _JOB,
    "job_id": _JOB,
    "key_id": "4f1c2a90be37d815",
    "label": "deploy",
    "name": "mail",
    "notify": "https://example.com/hook",
    "operation_id": "01987a1c-3b11-7f02-8a43-6f0c2e9d5a17",
    "payload": {"user_id": 1},
    "queue": "mail",
    "reason": "the database is back",
    "task": "email.send",
    "tenant": "acme",
    "worker": "worker-1",
    "worker_id": "worker-1",
    "zone": "Europe/Berlin",
}
"""What a field of that name holds, where its schema takes it."""
_BY_FORMAT: Final = {"date-time": _INSTANT, "duration": "PT5M", "date": "2026-06-01"}
_BY_TYPE: Final[dict[str, Any]] = {
    "null": None,
    "boolean": False,
    "integer": 1,
    "number": 1.0,
    "string": "text",
}


def name_example(name: str) -> str:
    """What stands in a path for `{name}`."""
    return str(_BY_NAME.get(name, name))


def example_of(schema: dict[str, Any], schemas: dict[str, Any], name: str = "") -> Any:
    """A value of `schema`, whose references lead into `schemas`, for the field `name`."""
    if "$ref" in schema:
        return example_of(schemas[schema["$ref"].rsplit("/", 1)[1]], schemas, name)
    if "anyOf" in schema:
        return _of_one(schema["anyOf"], schemas, name)
    if "enum" in schema or "const" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    if "properties" in schema:
        return {key: example_of(inner, schemas, key) for key, inner in schema["properties"].items()}
    kind = schema.get("type")
    if kind == "array":
        return [example_of(schema["items"], schemas, name)] if "items" in schema else []
    if kind == "object":
        inner = schema.get("additionalProperties")
        key = schema.get("propertyNames", {}).get("enum", ["key"])[0]
        return {key: example_of(inner, schemas)} if isinstance(inner, dict) else {}
    if "format" in schema:
        return _BY_FORMAT[schema["format"]]
    known = _BY_NAME.get(name)
    if kind is None:
        return known
    if known is not None and type(known) is type(_BY_TYPE[kind]):
        return known
    return max(schema.get("minimum", 1), 1) if kind == "integer" else _BY_TYPE[kind]


def _of_one(choices: list[dict[str, Any]], schemas: dict[str, Any], name: str) -> Any:
    """Of the first; null where that may be, but for names that are known."""
    if {"type": "null"} in choices and name not in _BY_NAME:
        return None
    return example_of(choices[0], schemas, name)
