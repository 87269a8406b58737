"""Steps and answers as callers see them, the same from the API and from the audits."""

from __future__ import annotations

import msgspec

from minutebook.client.history_models import HistoryEvent, WhyAnswer, WhyReason
from minutebook.history.steps import Step
from minutebook.history.story import sentence
from minutebook.history.why import Answer
from minutebook.times import format_instant


def event_body(step: Step) -> HistoryEvent:
    """A step; payloads and results are shown as text."""
    return HistoryEvent(
        id=step.event_id,
        at=format_instant(step.at),
        kind=step.kind,
        execution_id=step.execution or None,
        text=sentence(step),
        partition=step.place.partition,
        offset=step.place.offset,
        owner=step.owner,
        epoch=step.epoch,
        tzdata=step.tzdata,
        said={name: _shown(name, value) for name, value in step.said.items()},
    )


_DIGESTS = ("fingerprint", "payload_sha256")


def _shown(name: str, value: object) -> object:
    if isinstance(value, bytes):
        return value.hex() if name in _DIGESTS else value.decode(errors="replace")
    return msgspec.to_builtins(value)


def why_body(answer: Answer) -> WhyAnswer:
    """An answer."""
    return WhyAnswer(
        job_id=answer.job_id,
        at=format_instant(answer.at),
        execution_id=answer.execution_id,
        verdict=answer.verdict,  # type: ignore[arg-type]  # one of the verdicts by `Why`
        late_ms=answer.late_ms,
        attempts=answer.attempts,
        previous_at=None if answer.previous_at is None else format_instant(answer.previous_at),
        next_at=None if answer.next_at is None else format_instant(answer.next_at),
        reasons=[
            WhyReason(
                code=reason.code,
                text=reason.text,
                at=None if reason.at is None else format_instant(reason.at),
                event_id=reason.event_id,
            )
            for reason in answer.reasons
        ],
    )
