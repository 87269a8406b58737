"""`minutebook.history.why` over a log: the job's partition is read, and others only where the answer is about a limit."""

from __future__ import annotations

from collections.abc import Callable

from minutebook.history.steps import Wanted
from minutebook.history.why import Answer, Why
from replay.frames import AuditReader, check_whole, frames_of
from replay.holders import held_elsewhere
from replay.offers import Reports, offers_told
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
    open_reports: Callable[[], Reports] | None = None,
    reader: AuditReader | None = None,
) -> Answer:
    """The answer for a job's instant (ms), as far as the log goes; what waited for a worker is looked up in `open_reports`,
    None where that topic is not at hand; `reader` tells afterwards how far the job's partition was read.

    Raises SettingsError where the job's partition does not begin with its first record, LogError, KafkaError.
    """
    partition = home_of(log, Wanted(tenant, job_id))
    check_whole(log, [partition])
    found = Why(tenant, job_id, at, is_part=isinstance(log, TenantLog))
    for frame in frames_of(log, partition, until, advance, reader):
        found.take(frame)
    answer = found.answer(partition)
    for wait in found.waits:
        if wait.limit is not None:
            held = list(held_elsewhere(log, tenant, wait, partition, until, advance))
            answer.put_behind(("limit", "permit_held"), held)
        else:
            told = offers_told(open_reports, partition, wait)
            answer.put_behind(("no_worker", "workers_busy", "workers_untold"), told)
    return answer
