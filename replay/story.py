"""Everything that happened to a job or an execution, in order, from the log alone."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from minutebook.client.times import format_instant
from minutebook.history.steps import Step, Wanted, steps_of
from minutebook.history.story import sentence
from minutebook.ids import is_execution_id, job_key, job_of
from minutebook.wire.topics import partition_of
from replay.frames import frames_of
from replay.reading import TO_THE_END, Advance, Log, Until, unheard


def wanted_of(tenant: str, subject: str) -> Wanted:
    """Whose steps: `subject` is a job's id or an execution's."""
    return Wanted(tenant, job_of(subject), subject) if is_execution_id(subject) else Wanted(tenant, subject)


def home_of(log: Log, wanted: Wanted) -> int:
    """The partition of a job."""
    return partition_of(job_key(wanted.tenant, wanted.job_id), len(log.partitions()))


def steps_in(
    log: Log, wanted: Wanted, until: Until = TO_THE_END, advance: Advance = unheard
) -> Iterator[Step]:
    """The steps of a job or execution. Raises LogError, KafkaError."""
    partition = home_of(log, wanted)
    for frame in frames_of(log, partition, until, advance):
        yield from steps_of(partition, frame, wanted)


def step_body(step: Step) -> dict[str, object]:
    """A step as JSON has it: instants as text beside the numbers of the log, bytes as text."""
    return {
        "id": step.event_id,
        "at": format_instant(step.at),
        "kind": step.kind,
        "execution_id": step.execution or None,
        "text": sentence(step),
        "partition": step.place.partition,
        "offset": step.place.offset,
        "owner": step.owner,
        "epoch": step.epoch,
        "tzdata": step.tzdata,
        "said": {name: _shown(value) for name, value in step.said.items()},
    }


def _shown(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode(errors="replace") if value[:1] in b'{["tfn-0123456789' else value.hex()
    return msgspec.to_builtins(value)
