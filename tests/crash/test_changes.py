"""A pause, cancel or edit that was acknowledged before an instant wins over its run, also when the owner dies between."""

from __future__ import annotations

from typing import Final

import pytest

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain.commands import CancelJob, EditJob, PauseJob, ResumeJob, SubmitJob
from minutebook.mint import mint_id
from tests.crash.checker import verdict
from tests.crash.stack import TENANT, Stack, job, now_ms
from tests.crash.state import differing_states

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

EACH: Final = 4
"""Jobs of a kind: about one a partition."""
AHEAD_MS: Final = 6_000
MOVED_MS: Final = 3_000


def named(kind: str, at: int) -> list[SubmitJob]:
    return [job(job_id=f"{kind}-{number}", run_at=at) for number in range(EACH)]


def about(command: SubmitJob) -> dict[str, object]:
    """The fields of a command on the job."""
    return {"tenant": TENANT, "job_id": command.job_id, "command_id": mint_id(), "issued_at": now_ms()}


def edit_of(command: SubmitJob, run_at: int) -> EditJob:
    fields = about(command)
    body = job(job_id=command.job_id, run_at=run_at, command_id=fields["command_id"])
    return EditJob(**fields, job=body)  # type: ignore[arg-type]  # fields of the command


def test_a_change_on_record_before_the_instant_wins_though_the_owner_dies(stack: Stack) -> None:
    owner, worker = stack.owner("o1"), stack.worker("w1")
    stack.await_ready(owner, worker)
    at = now_ms() + AHEAD_MS
    paused, cancelled, edited, kept = (named(kind, at) for kind in ("paused", "cancelled", "edited", "kept"))
    stack.submit([*paused, *cancelled, *edited, *kept])
    stack.submit([PauseJob(**about(one)) for one in paused])  # type: ignore[arg-type]  # fields of the command
    stack.submit([CancelJob(**about(one)) for one in cancelled])  # type: ignore[arg-type]  # as above
    stack.submit([edit_of(one, at + MOVED_MS) for one in edited])

    kinds = (facts.JobPaused, facts.JobCancelled, facts.JobEdited)
    stack.until("on record", lambda log: all(len(list(log.events(kind))) == EACH for kind in kinds))
    assert now_ms() < at, "this machine is too slow: every change must be on record before the instant"
    owner.kill()
    owner.start()
    stack.until("those that were moved", lambda _: len(starts(stack, "edited")) == EACH)
    assert len(starts(stack, "kept")) == EACH
    assert starts(stack, "paused") == starts(stack, "cancelled") == []
    assert min(starts(stack, "edited")) >= at + MOVED_MS - 50

    stack.submit([ResumeJob(**about(one)) for one in paused])  # type: ignore[arg-type]  # as above
    stack.await_done()
    assert len(starts(stack, "paused")) == EACH
    assert verdict(stack) == []
    owner.end()
    assert differing_states(stack, "o1") == []


def starts(stack: Stack, kind: str) -> list[float]:
    """When the jobs of a kind started, ms."""
    runs = [one for one in stack.witness() if one.moment == "start"]
    return [one.at for one in runs if ids.job_of(one.execution).startswith(f"{kind}-")]
