"""The past of a job, read from the log itself when somebody asks: its events in words, and why something ran or did not.

The partition is read from its first record on, as the audits read it, so that both answer the same. A log too long for
that is refused: `python -m replay` has the time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from aiokafka.errors import KafkaError

from api.problems import Refused
from api.services import Services
from minutebook.errors import LogError
from minutebook.history.steps import Step, Wanted, steps_of
from minutebook.history.why import Answer, Reason, Why
from minutebook.ids import job_of
from minutebook.log.reader import FrameReader, Taken
from minutebook.wire.frames import Frame

RECORDS_MAX: Final = 100_000
"""Records of a partition that one question reads."""
_SLICE: Final = 20
"""Frames after which others get their turn."""


async def story_of(services: Services, wanted: Wanted) -> list[Step]:
    """The steps of a job or of an execution, as far as the view has read. Raises Refused."""
    partition = services.view.partition_of_job(wanted.tenant, wanted.job_id)
    return [
        step async for frame in _frames(services, partition) for step in steps_of(partition, frame, wanted)
    ]


async def why_of(services: Services, tenant: str, job_id: str, at: int, execution: str = "") -> Answer:
    """Why a job did or did not run at an instant (ms), or an `execution` that was asked for then. Raises Refused."""
    partition = services.view.partition_of_job(tenant, job_id)
    found = Why(tenant, job_id, at, execution)
    async for frame in _frames(services, partition):
        found.take(frame)
    answer = found.answer(partition)
    if any(wait.limit is None for wait in found.waits):
        text = "What workers offered then, `python -m replay why` tells, as long as worker-reports is kept"
        answer.put_behind(("no_worker", "workers_busy"), [Reason(code="reports_untold", text=text)])
    return answer


async def why_of_execution(services: Services, tenant: str, name: str) -> Answer:
    """Why an execution did or did not run. Raises Refused: not-found for one that nobody asked for, and others."""
    job_id, suffix = job_of(name), name.rpartition(":")[2]
    if suffix.isdecimal():
        return await why_of(services, tenant, job_id, int(suffix))
    row = services.view.execution(tenant, name)
    if row is None:
        raise Refused("not-found")
    return await why_of(services, tenant, job_id, row.scheduled_at, name)


async def _frames(services: Services, partition: int) -> AsyncIterator[Frame]:
    """Valid frames of a partition, from the first on."""
    end = services.view.readers[partition].position + 1
    if services.records is None or end > RECORDS_MAX:
        raise Refused("history-too-long")
    reader = FrameReader()
    try:
        async for record in services.records.read(partition, end):
            taken = reader.take(record)
            if isinstance(taken, Taken):
                yield taken.frame
            if record.offset % _SLICE == _SLICE - 1:
                await asyncio.sleep(0)
    except (LogError, KafkaError, OSError) as error:
        raise Refused(
            "not-ready", f"The log cannot be read now ({type(error).__name__}); try again."
        ) from error
