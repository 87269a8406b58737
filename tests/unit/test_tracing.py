"""Traces: from a submission through the grant to the end of a task; a link where the run is far from the submission."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextvars import copy_context

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from minutebook import App, tracing
from minutebook.testing import InMemoryScheduler
from minutebook.worker import Context
from tests.spans import Spans, collected, ids, place

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    with collected(monkeypatch) as found:
        yield found


class Tasks:
    """Tasks of each kind that note the trace context they see."""

    def __init__(self) -> None:
        self.app = App()
        self.seen: dict[str, list[str]] = {}

        @self.app.task("instant")
        async def instant(payload: None) -> None:
            self.note("instant", tracing.current())

        @self.app.task("suspends")
        async def suspends(payload: None, ctx: Context) -> None:
            self.note("suspends", ctx.trace)

        @self.app.task("thread")
        def thread(payload: None) -> None:
            self.note("thread", tracing.current())

        @self.app.task("fails")
        async def fails(payload: None) -> None:
            raise ValueError("the secret of a customer")

    def note(self, task: str, traceparent: str) -> None:
        self.seen.setdefault(task, []).append(traceparent)


def ids_in(traceparent: str) -> tuple[int, int]:
    _, trace_id, span_id, _ = traceparent.split("-")
    return int(trace_id, 16), int(span_id, 16)


@pytest.mark.parametrize("task", ["instant", "suspends", "thread"])
async def test_a_run_is_under_its_grant_which_is_under_the_submission(task: str, spans: Spans) -> None:
    tasks = Tasks()
    async with InMemoryScheduler(tasks.app) as scheduler:
        with trace.get_tracer("test").start_as_current_span("submit"):
            scheduler.submit(task, delay="30s")
        await scheduler.advance("1m")
    submitted, granted, ran = spans.one("submit"), spans.one(f"grant {task}"), spans.one(f"run {task}")
    assert granted.parent is not None
    assert ran.parent is not None
    assert ids(granted.parent) == place(submitted)
    assert ids(ran.parent) == place(granted)
    assert ran.kind is SpanKind.CONSUMER
    assert [ids_in(text) for text in tasks.seen[task]] == [place(ran)]
    assert ran.attributes is not None
    assert ran.attributes["minutebook.outcome"] == "succeeded"
    assert (list(granted.links), list(ran.links)) == ([], [])


async def test_what_is_due_long_after_is_a_trace_of_its_own_with_a_link(spans: Spans) -> None:
    tasks = Tasks()
    async with InMemoryScheduler(tasks.app) as scheduler:
        with trace.get_tracer("test").start_as_current_span("submit"):
            scheduler.submit("instant", every="40s")
        await scheduler.advance("2m")
    submitted = place(spans.one("submit"))
    first, *later = spans.named("grant instant")
    assert first.parent is not None
    assert ids(first.parent) == submitted
    assert len(later) == 2
    assert [[ids(link.context) for link in span.links] for span in later] == [[submitted]] * 2
    assert [span.parent for span in later] == [None, None]
    assert len({place(span)[0] for span in (first, *later)}) == 3
    runs = spans.named("run instant")
    assert [place(run)[0] for run in runs] == [place(span)[0] for span in (first, *later)]


async def test_a_failed_run_tells_the_kind_of_its_error_and_nothing_of_its_text(spans: Spans) -> None:
    async with InMemoryScheduler(Tasks().app) as scheduler:
        with trace.get_tracer("test").start_as_current_span("submit"):
            scheduler.submit("fails")
        await scheduler.advance("1s")
    ran = spans.named("run fails")[0]
    assert ran.status.status_code is StatusCode.ERROR
    assert ran.attributes is not None
    assert ran.attributes["error.type"] == "ValueError"
    assert "secret" not in ran.to_json()


async def test_a_run_without_a_submission_that_is_traced_is_a_trace_of_its_own(spans: Spans) -> None:
    async with InMemoryScheduler(Tasks().app) as scheduler:
        scheduler.submit("instant")
        await scheduler.advance("1s")
    assert [span.name for span in spans.all()] == ["run instant"]
    assert spans.all()[0].parent is None


async def test_where_nobody_collects_spans_the_callers_context_still_reaches_a_task_that_is_near() -> None:
    tasks = Tasks()
    assert not tracing.is_on()
    async with InMemoryScheduler(tasks.app) as scheduler:
        caller = tracing.passed_on(CALLER)
        assert caller is not None
        caller.enter(copy_context()).run(lambda: scheduler.submit("suspends", every="40s"))
        await scheduler.advance("2m")
    assert tasks.seen["suspends"] == [CALLER, "", ""]


def test_without_the_package_nothing_is_made_and_nothing_breaks() -> None:
    """In a process of its own, where the package cannot be found."""
    code = """
import asyncio, sys
sys.modules["opentelemetry"] = None
from minutebook import App, tracing
from minutebook.testing import InMemoryScheduler
assert not tracing.HAS_API and not tracing.is_on()
assert tracing.current() == tracing.current_trace_id() == ""
app, seen = App(), []
@app.task("t")
async def t(payload, ctx):
    seen.append(ctx.trace)
async def main():
    async with InMemoryScheduler(app) as scheduler:
        scheduler.submit("t")
        await scheduler.advance("1s")
asyncio.run(main())
print(seen)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "['']\n"), done.stderr
