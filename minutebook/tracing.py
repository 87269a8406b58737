"""Trace context and spans by OpenTelemetry's API, where it is installed (extra `otel`) and somebody has set up its SDK.

Without either, nothing is made: a caller's context still travels, as text in the records. This is the one place that reads
and writes it; instrumentations of Kafka clients would do it a second time.
"""

from __future__ import annotations

import contextvars
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from minutebook import __version__

try:
    from opentelemetry import context, trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    HAS_API = True
except ModuleNotFoundError:
    HAS_API = False

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer, TracerProvider

Attributes = Mapping[str, str | int | bool]
_FIELD: Final = "traceparent"


def is_on() -> bool:
    """Whether spans go anywhere: the API is there, and a provider is set."""
    return HAS_API and not isinstance(
        trace.get_tracer_provider(), trace.ProxyTracerProvider | trace.NoOpTracerProvider
    )


def current() -> str:
    """`traceparent` of the current span; empty if there is none."""
    return _text_of(context.get_current()) if HAS_API else ""


def current_trace_id() -> str:
    """Id of the current trace, 32 hexadecimal digits; empty if there is none."""
    found = trace.get_current_span().get_span_context() if HAS_API else None
    return format(found.trace_id, "032x") if found is not None and found.is_valid else ""


class Made:
    """A span that is under way."""

    def __init__(self, span: Span, inside: Context) -> None:
        self._span = span
        self._inside = inside

    @property
    def traceparent(self) -> str:
        """What goes on under it carries this."""
        return _text_of(self._inside)

    def enter(self, variables: contextvars.Context) -> contextvars.Context:
        """`variables`, in which this span is the current one from here on."""
        variables.run(context.attach, self._inside)
        return variables

    def note(self, name: str, value: str | int) -> None:
        """Set an attribute."""
        self._span.set_attribute(name, value)

    def fail(self, reason: str) -> None:
        """Mark it as failed; `reason` is a kind of error, no text of people or payloads."""
        self._span.set_attribute("error.type", reason)
        self._span.set_status(trace.StatusCode.ERROR)

    def end(self, at_ms: int | None = None) -> None:
        """It is over, now or at `at_ms`."""
        self._span.end(None if at_ms is None else at_ms * 1_000_000)


def begin(
    name: str,
    kind: str,
    traceparent: str,
    attributes: Attributes,
    *,
    is_linked: bool = False,
    at_ms: int | None = None,
) -> Made | None:
    """A span under the remote `traceparent`, or in a trace of its own with a link to it; None where none is made.

    `kind`: INTERNAL or CONSUMER. Begins now or at `at_ms`.
    """
    if not is_on():
        return None
    remote = _context_of(traceparent)
    links = [trace.Link(found)] if is_linked and (found := _span_context(remote)).is_valid else []
    parent = context.Context() if is_linked else remote
    span = _tracer_of(trace.get_tracer_provider()).start_span(
        name,
        parent,
        trace.SpanKind[kind],
        attributes,
        links,
        None if at_ms is None else at_ms * 1_000_000,
    )
    return Made(span, trace.set_span_in_context(span, parent))


def passed_on(traceparent: str) -> Made | None:
    """No span, but the remote context itself as the current one; None where there is none, or nothing to carry it."""
    if not (HAS_API and traceparent):
        return None
    remote = _context_of(traceparent)
    return Made(trace.get_current_span(remote), remote)


def _context_of(traceparent: str) -> Context:
    return TraceContextTextMapPropagator().extract({_FIELD: traceparent}, context.Context())


def _span_context(inside: Context) -> trace.SpanContext:
    return trace.get_current_span(inside).get_span_context()


def _text_of(inside: Context) -> str:
    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier, inside)
    return carrier.get(_FIELD, "")


@lru_cache(maxsize=2)
def _tracer_of(provider: TracerProvider) -> Tracer:
    return provider.get_tracer("minutebook", __version__)
