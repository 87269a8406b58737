"""`minutebook.history.why` over a log: the job's partition is read once."""

from __future__ import annotations

from minutebook.client.times import format_instant
from minutebook.history.steps import Wanted
from minutebook.history.why import Answer, Why
from replay.frames import frames_of
from replay.reading import TO_THE_END, Advance, Log, Until, unheard
from replay.story import home_of


def why_in(
    log: Log,
    tenant: str,
    job_id: str,
    at: int,
    until: Until = TO_THE_END,
    advance: Advance = unheard,
) -> Answer:
    """The answer for a job's instant (ms), as far as the log goes. Raises LogError, KafkaError, SettingsError."""
    partition = home_of(log, Wanted(tenant, job_id))
    found = Why(tenant, job_id, at)
    for frame in frames_of(log, partition, until, advance):
        found.take(frame)
    return found.answer(partition)


def answer_body(answer: Answer) -> dict[str, object]:
    """The answer as JSON has it: instants as text."""
    return {
        "tenant": answer.tenant,
        "job_id": answer.job_id,
        "at": format_instant(answer.at),
        "execution_id": answer.execution_id,
        "verdict": answer.verdict,
        "late_ms": answer.late_ms,
        "attempts": answer.attempts,
        "previous_at": None if answer.previous_at is None else format_instant(answer.previous_at),
        "next_at": None if answer.next_at is None else format_instant(answer.next_at),
        "reasons": [
            {
                "code": reason.code,
                "text": reason.text,
                "at": None if reason.at is None else format_instant(reason.at),
                "event_id": reason.event_id,
            }
            for reason in answer.reasons
        ],
    }
