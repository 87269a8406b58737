"""The OpenAPI document, from the routes and the models that both sides share."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from fastapi import FastAPI
from fastapi.routing import APIRoute

from api.auth import Allowed
from api.examples import example_of, name_example
from minutebook import __version__
from minutebook.client.audit_models import AuditPage
from minutebook.client.calendar_models import Calendar, CalendarEffect, CalendarPage, CalendarRequest
from minutebook.client.change_models import JobChange, JobVersionPage, ResumeRequest
from minutebook.client.dead_letter_models import DeadLetterPage
from minutebook.client.fleet import DeclaredTaskPage, WholeTask, WholeWorker, Worker, WorkerPage
from minutebook.client.history_models import HistoryPage, WhyAnswer
from minutebook.client.key_models import (
    CreatedKey,
    Key,
    KeyPage,
    KeyRequest,
    Me,
    RotationRequest,
    TenantPage,
)
from minutebook.client.list_models import ExecutionsPage, JobPage, Overview
from minutebook.client.live_models import Changes, PartitionPage, Upcoming
from minutebook.client.models import (
    AlertPage,
    BatchRequest,
    BatchResult,
    Command,
    ExecutionPage,
    Job,
    JobRequest,
    Limit,
    LimitPage,
    LimitRequest,
    PauseRequest,
    Problem,
    Queue,
    QueuePage,
    QueueRequest,
    ReasonRequest,
    RedriveRequest,
    RunNow,
    WholeExecution,
)
from minutebook.client.operation_models import (
    BackfillDryRun,
    BackfillRequest,
    DiscardManyRequest,
    DryRun,
    JobDryRun,
    Operation,
    OperationPage,
    OperationRequest,
    RedriveManyRequest,
)
from minutebook.client.preview_models import Preview, PreviewRequest
from minutebook.client.put_models import PutEffect
from minutebook.ids import NAME_MAX

_MODELS: Final = (
    AlertPage,
    AuditPage,
    BackfillDryRun,
    BackfillRequest,
    BatchRequest,
    BatchResult,
    Calendar,
    CalendarEffect,
    CalendarPage,
    CalendarRequest,
    Changes,
    Command,
    CreatedKey,
    DeadLetterPage,
    DiscardManyRequest,
    DryRun,
    DeclaredTaskPage,
    ExecutionPage,
    ExecutionsPage,
    HistoryPage,
    Job,
    JobChange,
    JobPage,
    JobDryRun,
    JobRequest,
    JobVersionPage,
    Key,
    KeyPage,
    KeyRequest,
    Limit,
    LimitPage,
    LimitRequest,
    Me,
    PauseRequest,
    Operation,
    OperationPage,
    OperationRequest,
    PartitionPage,
    Overview,
    Preview,
    PreviewRequest,
    Problem,
    PutEffect,
    Queue,
    QueuePage,
    QueueRequest,
    ReasonRequest,
    RedriveManyRequest,
    RedriveRequest,
    ResumeRequest,
    RotationRequest,
    RunNow,
    TenantPage,
    Upcoming,
    WholeExecution,
    WholeTask,
    WholeWorker,
    Worker,
    WorkerPage,
    WhyAnswer,
)
_PATH_NAME: Final = re.compile(r"{(\w+)}")


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI 3.1 document of `app`."""
    schemas = msgspec.json.schema_components(_MODELS, ref_template="#/components/schemas/{name}")[1]
    shown: set[str] = set()
    paths: dict[str, Any] = {}
    for route in app.routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in sorted(route.methods or ()):
                operation = paths.setdefault(route.path, {})[method.lower()] = _operation(route)
                _show_body(operation, schemas)
                shown |= _show_answers(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "minutebook",
            "version": __version__,
            "description": "A job scheduler whose only truth is a Kafka log. Instants are RFC 3339 in UTC, durations "
            "ISO 8601. Every error is `application/problem+json` (RFC 9457).",
        },
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "examples": {name: {"value": example_of(schemas[name], schemas)} for name in sorted(shown)},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "An API key."}},
        },
    }


def scope_of(route: APIRoute) -> str | None:
    """The scope that a route declares; None if it declares none."""
    for dependency in route.dependant.dependencies:
        if isinstance(dependency.call, Allowed):
            return dependency.call.scope.value
    return None


def _length_max(name: str) -> int:
    """Characters of a part of a path: a name, or the id of an execution, which holds two."""
    return 2 * NAME_MAX + 1 if name == "execution_id" else NAME_MAX


def _operation(route: APIRoute) -> dict[str, Any]:
    extra: dict[str, Any] = dict(route.openapi_extra or {})
    summary, _, rest = (route.endpoint.__doc__ or "").strip().partition(". ")
    scope = scope_of(route)
    path_parameters = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "maxLength": _length_max(name)},
            "example": name_example(name),
        }
        for name in _PATH_NAME.findall(route.path)
    ]
    found: dict[str, Any] = {"operationId": route.operation_id, "summary": summary.rstrip(".")}
    if rest:
        found["description"] = rest
    found["security"] = [{"key": []}] if scope else []
    if scope:
        found["x-scope"] = scope
    found["parameters"] = path_parameters + extra.pop("parameters", [])
    return found | extra


def _show_body(operation: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Give the body an example, where the route gives none itself."""
    for content in operation.get("requestBody", {}).get("content", {}).values():
        content.setdefault("example", example_of(content["schema"], schemas))


def _show_answers(operation: dict[str, Any]) -> set[str]:
    """Give every answer that has a body an example, by reference; the names of the schemas that are shown."""
    shown: set[str] = set()
    for answer in operation["responses"].values():
        content = answer.get("content", {}).get("application/json")
        if content is not None:
            schema = content["schema"]
            names = [one["$ref"].rsplit("/", 1)[1] for one in schema.get("anyOf", [schema])]
            content["examples"] = {name: {"$ref": f"#/components/examples/{name}"} for name in names}
            shown.update(names)
    return shown
