"""Bulk operations on jobs, decided by whole cycles of several owners: which jobs are meant, and what each is told."""

from __future__ import annotations

from typing import Any

import pytest

from minutebook import ids
from minutebook.domain import book as state
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.commands import PauseJob, StartOperation
from minutebook.domain.operation import OperationFilter
from tests.simulation.desk import T0
from tests.simulation.desks import TENANT, Desks, jobs
from tests.simulation.folds import folded

HOUR_MS = 3_600_000


@pytest.fixture
def desks() -> Desks:
    """Jobs of two tasks, queues and tags, an hour before they are due."""
    made = Desks()
    made.know_queue("mail")
    made.submit(*jobs(4, "a"), run_at=T0 + HOUR_MS, task="send", tags=["x", "y"])
    made.submit(*jobs(3, "b"), run_at=T0 + HOUR_MS, queue="mail")
    made.submit("c", run_at=T0 + HOUR_MS, tenant="other", task="send", tags=["x"])
    made.cycle(1)
    return made


def statuses(desks: Desks) -> dict[str, str]:
    found = {}
    for desk in desks.desks:
        found |= {keys.names(row)[1]: job.status for row, job in desk.book.jobs.scan(b"")}
    return dict(sorted(found.items()))


def names_of(desks: Desks, status: str) -> list[str]:
    return [name for name, found in statuses(desks).items() if found == status]


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        ({}, [*jobs(4, "a"), *jobs(3, "b")]),
        ({"task": "send"}, jobs(4, "a")),
        ({"queue": "mail"}, jobs(3, "b")),
        ({"tag": "y"}, jobs(4, "a")),
        ({"tag": "z"}, []),
        ({"job_prefix": "a00"}, jobs(4, "a")),
        ({"job_prefix": "a001"}, ["a001"]),
        ({"status": "active", "task": "send", "tag": "x"}, jobs(4, "a")),
        ({"status": "paused"}, []),
        ({"from_at": T0 + 1}, []),
        ({"until_at": T0}, []),
        ({"from_at": T0, "until_at": T0 + 1}, [*jobs(4, "a"), *jobs(3, "b")]),
    ],
)
def test_all_jobs_that_fit_are_paused_and_no_other(
    wanted: dict[str, Any], meant: list[str], desks: Desks
) -> None:
    desks.start(kind="pause", **wanted)
    ended = desks.until_ended()
    assert (ended.matched, ended.done, ended.refused) == (len(meant), len(meant), 0)
    assert names_of(desks, "paused") == meant
    for desk in desks.desks:
        assert state.digest(folded(desk.records)) == state.digest(desk.rows)


def test_a_resume_means_the_paused_and_counts_each_once(desks: Desks) -> None:
    desks.submit(*jobs(3, "r"), cron="* * * * * *")
    desks.cycle(1)
    desks.start("first", kind="pause", job_prefix="r")
    desks.until_ended()
    desks.wait(5_000)
    desks.start("second", kind="resume")
    ended = desks.until_ended()
    assert (ended.matched, ended.done, ended.refused) == (3, 3, 0)
    assert names_of(desks, "paused") == []
    assert len(list(desks.log(facts.ExecutionsSkipped))) == 3


def test_a_cancel_means_paused_jobs_too(desks: Desks) -> None:
    desks.start("first", kind="pause", job_prefix="a")
    desks.until_ended()
    desks.start("second", kind="cancel", rate_per_s=100)
    ended = desks.until_ended()
    assert (ended.matched, ended.done) == (7, 7)
    assert list(statuses(desks)) == ["c"]


def test_what_is_done_says_by_whom_for_which_operation_and_why(desks: Desks) -> None:
    desks.start(kind="pause", job_prefix="a000")
    desks.until_ended()
    ((_, _, event),) = desks.log(facts.JobPaused)
    assert isinstance(event, facts.JobPaused)
    assert (event.actor, event.reason, event.cause) == ("anna by operation op", "fixed", "command")
    assert event.command_id == ids.operation_command_id(TENANT, "a000", "op")


def test_jobs_created_after_the_operation_are_not_meant(desks: Desks) -> None:
    desks.start(kind="pause")
    desks.wait(5)
    desks.submit("late", run_at=T0 + HOUR_MS)
    assert desks.until_ended().done == 7
    assert statuses(desks)["late"] == "active"


def test_jobs_that_somebody_else_changed_meanwhile_are_not_counted_as_refused(desks: Desks) -> None:
    desks.start(kind="pause", rate_per_s=1)
    desks.cycle(100)
    desks.cycle(100)
    for job_id in jobs(4, "a"):
        if statuses(desks)[job_id] == "active":
            command = PauseJob(tenant=TENANT, job_id=job_id, command_id="mine", issued_at=desks.now)
            desks.desk_of(ids.job_key(TENANT, job_id)).command(command)
    ended = desks.until_ended()
    assert ended.refused == 0
    assert len(names_of(desks, "paused")) == 7


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"job_id": "a"}, "filter/job_id"),
        ({"error_type": "E"}, "filter/error_type"),
        ({"cause": "attempts"}, "filter/cause"),
        ({"status": "completed"}, "filter/status"),
        ({"tag": "a b"}, "filter/tag"),
        ({"from_at": 5, "until_at": 5}, "filter/until_at"),
    ],
)
def test_a_senseless_filter_is_refused_by_field(wanted: dict[str, Any], field: str, desks: Desks) -> None:
    command = StartOperation(
        tenant=TENANT,
        operation="op",
        command_id="op",
        issued_at=desks.now,
        kind="pause",
        filter=OperationFilter(**wanted),
    )
    desks.home().command(command)
    (said,) = [event for event in desks.cycle(1) if isinstance(event, facts.CommandRejected)]
    assert said.field == field


@pytest.mark.parametrize(("kind", "field"), [("redrive", "tag"), ("redrive", "status"), ("backfill", "tag")])
def test_what_is_said_of_jobs_does_not_go_with_executions(kind: str, field: str, desks: Desks) -> None:
    desks.start(kind=kind, **{field: "x"}, **({"job_id": "a000"} if kind == "backfill" else {}))
    (said,) = [event for event in desks.cycle(1) if isinstance(event, facts.CommandRejected)]
    assert said.field == f"filter/{field}"
