"""What the API and the audits answer about the past: events of a job in words, and why something did or did not run."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from minutebook.client.models import InstantText, Name

Verdict = Literal[
    "ran",
    "running",
    "waiting",
    "skipped",
    "dead",
    "cancelled",
    "paused",
    "pending",
    "moved",
    "missing",
    "not_an_instant",
    "before_the_job",
    "after_its_end",
    "unknown_job",
]


class HistoryEvent(msgspec.Struct, kw_only=True):
    """One thing that the log says of a job. `id` is its place in the log and stays the same for ever; `said` is what the
    event says by its own names."""

    id: Annotated[str, Meta(description="partition.offset.event.row")]
    at: InstantText
    kind: str
    execution_id: str | None
    text: str
    partition: int
    offset: int
    owner: str
    epoch: int
    tzdata: str
    said: dict[str, Any]


class HistoryPage(msgspec.Struct):
    """Events of a job in the order in which they were decided."""

    items: list[HistoryEvent]
    next_cursor: str | None


class WhyReason(msgspec.Struct, kw_only=True):
    """One fact that an answer rests on. `event_id`: where the log has it; null where it follows from a definition."""

    code: str
    text: str
    at: InstantText | None
    event_id: str | None


class WhyAnswer(msgspec.Struct, kw_only=True):
    """Why a job ran at an instant, or did not. `late_ms`: from due to the first start; null where none began."""

    job_id: Name
    at: InstantText
    execution_id: str
    verdict: Verdict
    late_ms: int | None
    attempts: int
    previous_at: InstantText | None
    next_at: InstantText | None
    reasons: list[WhyReason]
