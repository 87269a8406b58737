"""Everything that happened to a job or an execution, in order, from the log alone."""

from __future__ import annotations

from collections.abc import Iterator

from minutebook.history.steps import Step, Wanted, steps_of
from minutebook.ids import is_execution_id, job_key, job_of
from minutebook.wire.topics import partition_of
from replay.frames import AuditReader, frames_of
from replay.reading import TO_THE_END, Advance, Log, Until, unheard


def wanted_of(tenant: str, subject: str) -> Wanted:
    """Whose steps: `subject` is a job's id or an execution's."""
    return Wanted(tenant, job_of(subject), subject) if is_execution_id(subject) else Wanted(tenant, subject)


def home_of(log: Log, wanted: Wanted) -> int:
    """The partition of a job."""
    return partition_of(job_key(wanted.tenant, wanted.job_id), len(log.partitions()))


def steps_in(
    log: Log,
    wanted: Wanted,
    until: Until = TO_THE_END,
    advance: Advance = unheard,
    reader: AuditReader | None = None,
) -> Iterator[Step]:
    """The steps of a job or execution; `reader` tells afterwards how far was read. Raises LogError, KafkaError."""
    partition = home_of(log, wanted)
    for frame in frames_of(log, partition, until, advance, reader):
        yield from steps_of(partition, frame, wanted)
