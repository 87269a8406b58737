"""`minutebook.history.why` over a log: the job's partition is read once."""

from __future__ import annotations

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
