"""How everything stands: counts that are links, what is due, how late it starts, and what needs somebody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, NamedTuple

from fastapi import Depends, Request, Response

from api.auth import Caller, Scope
from api.limits import limits_of
from api.list_filters import ATTEMPT_STATUSES, JOB_STATUSES
from api.lists import overview
from api.pages.access import Seen, page_router, ready
from api.pages.live import show_live
from api.pages.queues import known_tasks
from api.routes.alerts import alerts_page
from api.routes.queues import queues_of
from api.routes.workers import workers_of
from api.services import Services
from minutebook.client.list_models import Overview
from minutebook.client.live_models import DueBucket
from minutebook.client.models import Alert
from minutebook.domain.view_rows import MINUTE_MS
from minutebook.times import format_instant, parse_instant

router = page_router()
Reading = Annotated[Caller, Depends(Seen(Scope.JOBS_READ))]
_KINDS: Final = "job execution operation queue limit task worker alert"
_ALERTS: Final = 5
_ALERT_MS: Final = 24 * 3_600_000
_OVERDUE_MS: Final = 60_000
_LAG: Final = 1_000
_NAMED: Final = 5


class Concern(NamedTuple):
    """Something that needs somebody: what, and the page about it, by `status`. `tone`: `bad`, or `wait` for what can wait."""

    text: str
    path: str
    tone: str = "wait"
    status: str = ""


@router.get("/")
async def show_overview(request: Request, caller: Reading) -> Response:
    """The overview."""
    services = await ready(request)
    found, now = overview(services, caller.tenant), services.clock.now()
    alerts = _alerts(services, caller, now)
    return show_live(
        request,
        "overview",
        _KINDS,
        overview=found,
        job_statuses=JOB_STATUSES,
        attempt_statuses=ATTEMPT_STATUSES,
        started=_started(found, now),
        concerns=list(_concerns(services, caller, found, now)),
        alerts=alerts,
    )


def _started(found: Overview, now: int) -> list[DueBucket]:
    """Attempts started in each of the last minutes."""
    first = now // MINUTE_MS - len(found.started_per_min) + 1
    return [
        DueBucket(format_instant((first + number) * MINUTE_MS), count)
        for number, count in enumerate(found.started_per_min)
    ]


def _alerts(services: Services, caller: Caller, now: int) -> list[Alert]:
    """The latest alerts of a day."""
    page = alerts_page(services, caller.tenant, "", _ALERTS, None)
    return [alert for alert in page.items if now - parse_instant(alert.at) < _ALERT_MS]


def _concerns(services: Services, caller: Caller, found: Overview, now: int) -> Iterator[Concern]:
    overdue_at = found.oldest_overdue_at
    if overdue_at is not None and now - parse_instant(overdue_at) > _OVERDUE_MS:
        yield Concern("What is due waits for more than a minute.", "/executions", "bad", "queued")
    if found.dead_letters:
        yield Concern(
            f"{found.dead_letters:,} dead letter{_s(found.dead_letters)} to look at.", "/dead-letters", "bad"
        )
    yield from _about_workers(services)
    yield from _about_pauses(services, caller, found)
    lag = sum(services.readiness.lag.values())
    if lag > _LAG:
        path = "/partitions" if caller.may(Scope.PARTITIONS_READ) else ""
        yield Concern(f"The view is {lag:,} records behind the log: what is shown is not the latest.", path)


def _about_workers(services: Services) -> Iterator[Concern]:
    workers = workers_of(services)
    unknown = [it.task.name for it in known_tasks(services, workers) if not it.workers]
    if unknown:
        names = ", ".join(unknown[:_NAMED]) + (" …" if len(unknown) > _NAMED else "")
        yield Concern(f"No live worker knows {names}.", "/queues", "bad")
    silent = sum(worker.status == "silent" for worker in workers)
    if silent:
        yield Concern(f"{silent} worker{_s(silent)} fell silent.", "/workers", "bad")


def _about_pauses(services: Services, caller: Caller, found: Overview) -> Iterator[Concern]:
    paused = found.jobs.get("paused", 0)
    if paused:
        yield Concern(f"{paused:,} job{_s(paused)} paused.", "/jobs", status="paused")
    for queue in queues_of(services, caller):
        if queue.paused or queue.draining:
            state = "paused" if queue.paused else "draining"
            yield Concern(f"The queue {queue.name} is {state}.", f"/queues/{queue.name}")
    for limit in limits_of(services, caller):
        if limit.paused_until is not None:
            name = f"The limit {limit.name}" if limit.name else "The tenant's limit"
            yield Concern(f"{name} is paused.", f"/limits/{limit.name}" if limit.name else "/tenant-limit")


def _s(count: int) -> str:
    return "" if count == 1 else "s"
