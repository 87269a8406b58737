"""What a `PUT` of a job would do, told from the view: every check that needs no owner, and nothing is written.

What depends on the moment of the log the owner alone decides: whether the instant of a job that fires once has come, and
whether the id of a closed job is free again.
"""

from __future__ import annotations

from typing import Final

import msgspec

from api.answers import version_body
from api.auth import Caller
from api.problems import refused_field
from api.services import Services
from minutebook.client.models import JobRequest
from minutebook.client.put_models import PutEffect
from minutebook.domain.commands import SubmitJob
from minutebook.domain.submit import described
from minutebook.domain.view_changes import version_of
from minutebook.domain.view_rows import JobRow

_NO_PRINT: Final = b""


def put_effect(services: Services, caller: Caller, job: SubmitJob, expected: int | None) -> PutEffect:
    """What a PUT of `job` would do, where the version `expected` is there. Raises Refused."""
    found = services.view.job(caller.tenant, job.job_id)
    row, progress = found or (None, None)
    _check_version(row, expected)
    _check_queue(services, job, row)
    _check_calendars(services, job, row)
    before = None if row is None else _body(job.job_id, row)
    after = _after(job, row, services.clock.now())
    effect = "created" if before is None else "unchanged" if before == after else "changed"
    return PutEffect(
        id=job.job_id,
        effect=effect,  # type: ignore[arg-type]  # one of the three
        status=None if progress is None else progress.status,  # type: ignore[arg-type]  # by the fold
        version=None if row is None else row.version,
        before=before,
        after=after,
    )


def _check_version(row: JobRow | None, expected: int | None) -> None:
    if expected is not None and (row is None or row.version != expected):
        detail = "there is no such job" if row is None else f"the job is at version {row.version}"
        raise refused_field("If-Match", f"{detail}; read it again", "stale-version")


def _check_queue(services: Services, job: SubmitJob, row: JobRow | None) -> None:
    if row is not None and row.queue == job.queue:
        return
    queue = services.view.queue(services.view.partition_of_queue(job.queue), job.queue)
    if queue is not None and queue.is_draining:
        raise refused_field(
            "/queue", "it takes no new jobs: choose another queue, or resume it", "queue-draining"
        )


def _check_calendars(services: Services, job: SubmitJob, row: JobRow | None) -> None:
    if job.timing is None:
        return
    named = row.timing.calendars if row is not None and row.timing is not None else []
    for field in ("exclude", "include"):
        for name in getattr(job.timing, field):
            if name not in named and services.view.calendar(job.tenant, name) is None:
                remedy = f"declare {name} first: minutebook calendar set"
                raise refused_field(f"/calendars/{field}", remedy, "unknown-calendar")


def _body(job_id: str, row: JobRow) -> JobRequest:
    return version_body(job_id, row).body


def _after(job: SubmitJob, row: JobRow | None, now: int) -> JobRequest:
    """The job to be. A delay that its instant was made by already gives no other instant."""
    made = version_of(described(job, _NO_PRINT, now))
    if made.is_recurring:
        return _body(job.job_id, made)
    at = now + (job.delay_ms or 0) if job.run_at is None else job.run_at
    if job.run_at is None and row is not None and row.first_at - row.accepted_at == (job.delay_ms or 0):
        at = row.first_at
    return _body(job.job_id, msgspec.structs.replace(made, first_at=at))
