"""The span of a request is what a job's runs go on under; where nobody traces, the caller's context is."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from opentelemetry.trace import SpanKind

from minutebook.domain.commands import SubmitJob
from tests.api.memory import Installation
from tests.spans import Spans, collected, ids, place

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
HEADERS = {"traceparent": CALLER}


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    with collected(monkeypatch) as found:
        yield found


def traceparents(world: Installation) -> list[str]:
    return [command.traceparent for command in world.log.sent if isinstance(command, SubmitJob)]


def places(world: Installation) -> list[tuple[int, int]]:
    """Trace and span id that each job goes on under."""
    parts = [text.split("-") for text in traceparents(world)]
    return [(int(trace_id, 16), int(span_id, 16)) for _, trace_id, span_id, _ in parts]


async def test_a_create_is_a_server_span_under_the_callers(
    api: httpx.AsyncClient, world: Installation, spans: Spans
) -> None:
    answer = await api.post("/v1/jobs", json={"id": "a", "task": "t"}, headers=HEADERS)
    assert answer.status_code == 201
    span = spans.one("POST /v1/jobs")
    assert span.kind is SpanKind.SERVER
    assert span.parent is not None
    assert (f"{span.parent.trace_id:032x}", f"{span.parent.span_id:016x}") == tuple(CALLER.split("-")[1:3])
    assert span.attributes is not None
    assert span.attributes["http.response.status_code"] == 201
    assert places(world) == [place(span)]


async def test_jobs_of_a_batch_go_on_under_its_one_span(
    api: httpx.AsyncClient, world: Installation, spans: Spans
) -> None:
    items = {"jobs": [{"id": name, "task": "t"} for name in ("a", "b")]}
    answer = await api.post("/v1/jobs/batch", json=items, headers={"idempotency-key": "k"})
    assert answer.status_code == 200, answer.text
    assert places(world) == [place(spans.one("POST /v1/jobs/batch"))] * 2


async def test_the_same_create_again_is_the_same_job_in_another_trace(
    api: httpx.AsyncClient, spans: Spans
) -> None:
    answers = [
        await api.post("/v1/jobs", json={"task": "t"}, headers={"idempotency-key": "k"}) for _ in range(2)
    ]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len({ids(span.get_span_context())[0] for span in spans.named("POST /v1/jobs")}) == 2


async def test_a_problem_names_the_trace(api: httpx.AsyncClient, spans: Spans) -> None:
    answer = await api.get("/v1/jobs/nothing")
    assert answer.json()["trace_id"] == f"{place(spans.one('GET /v1/jobs/{job_id}'))[0]:032x}"


async def test_health_has_no_span(api: httpx.AsyncClient, spans: Spans) -> None:
    assert (await api.get("/readyz")).status_code == 200
    assert spans.all() == []


async def test_where_nobody_traces_the_callers_context_travels(
    api: httpx.AsyncClient, world: Installation
) -> None:
    await api.post("/v1/jobs", json={"id": "a", "task": "t"}, headers=HEADERS)
    await api.post("/v1/jobs", json={"id": "b", "task": "t"}, headers={"traceparent": "nonsense"})
    assert traceparents(world) == [CALLER, ""]
