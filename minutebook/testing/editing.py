"""Jobs as they stand, as commands that would make them so: what an edit starts from."""

from __future__ import annotations

from typing import TypedDict

from minutebook.domain.commands import SubmitJob
from minutebook.domain.view_rows import JobRow


class About(TypedDict):
    """What every command on a job has."""

    tenant: str
    job_id: str
    command_id: str
    issued_at: int


def submission_of(about: About, row: JobRow) -> SubmitJob:
    """The command that makes a job what this version of it is."""
    is_once = not row.cron and row.every_ms < 0
    return SubmitJob(
        **about,
        task=row.task,
        payload=row.payload,
        queue=row.queue,
        run_at=row.first_at if is_once else None,
        cron=row.cron or None,
        zone=row.zone,
        late=row.late,
        timeout_ms=row.timeout_ms,
        priority=row.priority,
        policy=row.policy,
        limit=row.limit,
        notify=row.notify,
        every_ms=None if row.every_ms < 0 else row.every_ms,
        timing=row.timing,
        tags=row.tags,
    )
