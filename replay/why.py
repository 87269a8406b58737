"""`minutebook.history.why` over a log: the job's partition is read, and others only where the answer is about a limit."""

from __future__ import annotations

from minutebook.history.steps import Wanted
from minutebook.history.why import Answer, Why
from replay.frames import check_whole, frames_of
from replay.holders import held_elsewhere
from replay.reading import TO_THE_END, Advance, Log, Until, unheard
from replay.story import home_of
from replay.tenant_files import TenantLog


def why_in(
    log: Log,
    tenant: str,
    job_id: str,
    at: int,
    until: Until = TO_THE_END,
    advance: Advance = unheard,
) -> Answer:
    """The answer for a job's instant (ms), as far as the log goes.

    Raises SettingsError where the job's partition does not begin with its first record, LogError, KafkaError.
    """
    partition = home_of(log, Wanted(tenant, job_id))
    check_whole(log, [partition])
    found = Why(tenant, job_id, at, is_part=isinstance(log, TenantLog))
    for frame in frames_of(log, partition, until, advance):
        found.take(frame)
    answer = found.answer(partition)
    for wait in found.waits:
        if wait.limit is not None:
            held = list(held_elsewhere(log, tenant, wait, partition, until, advance))
            answer.put_behind(("limit", "permit_held"), held)
    return answer
