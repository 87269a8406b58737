"""Answers about waits in limited weeks, held against what made them."""

from __future__ import annotations

from minutebook.domain import events as facts
from minutebook.history.completeness import Completeness
from minutebook.history.ledger import Range
from minutebook.history.why import Answer
from minutebook.ids import job_key, job_of
from minutebook.wire.frames import Frame, decode_frame
from minutebook.wire.topics import partition_of
from replay.frames import frames_of
from replay.why import why_in
from tests.simulation.copies import CopiedLog
from tests.simulation.limited_weeks import (
    AT_ONCE,
    BY_NUMBER,
    BY_RATE,
    CONCURRENCY_MAX,
    FULL,
    IDLE,
    PAUSED,
    RATED,
    LimitedWeeks,
    Run,
)
from tests.simulation.office import TENANT

EVENTS = {
    "limit": facts.LimitCopied,
    "limit_paused": facts.LimitCopied,
    "permit_held": facts.ExecutionsGranted,
    "permit_out": facts.PermitsGranted,
    "permits_came": facts.PermitsReceived,
    "workers_busy": facts.SessionStarted,
}


class AskedWeeks:
    """Limited weeks that are over, their log, and what it answers."""

    def __init__(self, weeks: LimitedWeeks) -> None:
        self.weeks = weeks
        self.log = CopiedLog(*(desk.records for desk in weeks.office.desks))
        self._frames = [list(frames_of(self.log, partition)) for partition in self.log.partitions()]

    def runs(self) -> dict[str, list[Run]]:
        """Executions, by what made them wait."""
        found: dict[str, list[Run]] = {}
        for run in self.weeks.runs.values():
            found.setdefault(self.weeks.cause(run), []).append(run)
        return found

    def check(self, run: Run, cause: str) -> None:
        """Whether both answers about an execution agree with what made it wait."""
        answer = why_in(self.log, TENANT, job_of(run.name), run.due_at)
        check_why(self.weeks, run, cause, answer)
        self._check_places(answer)
        found = self.complete(Range(run.due_at, run.due_at), job_of(run.name))
        (ledger,) = [ledger for _, job_id, ledger in found.jobs_of(TENANT) if job_id == job_of(run.name)]
        assert (dict(ledger.counts), ledger.missing) == ({"ran": 1}, []), run

    def check_all(self) -> None:
        """Whether every instant of every job is accounted for, none too many."""
        for limit in (BY_NUMBER, BY_RATE):
            for job_id in self.weeks.jobs(limit):
                found = self.complete(Range(0, 1 << 60), job_id)
                ledger = found.ledgers[TENANT, job_id]
                assert ledger.missing == [], job_id
                assert dict(ledger.counts) == {"ran": len(self.weeks.instants(limit))}, job_id

    def complete(self, asked: Range, job_id: str) -> Completeness:
        """What `completeness` says of one job."""
        found = Completeness(asked, (TENANT, job_id))
        for frame in self._frames_of(job_id):
            found.take(frame)
        found.finish()
        return found

    def _frames_of(self, job_id: str) -> list[Frame]:
        return self._frames[partition_of(job_key(TENANT, job_id), len(self._frames))]

    def _check_places(self, answer: Answer) -> None:
        """Each fact is where the answer says."""
        for reason in answer.reasons:
            if reason.code in EVENTS:
                assert reason.event_id is not None, answer
                partition, offset, event, _ = map(int, reason.event_id.split("."))
                (record,) = self.log.read(partition, offset, offset + 1)
                assert isinstance(decode_frame(record.value).events[event], EVENTS[reason.code]), answer


def check_why(weeks: LimitedWeeks, run: Run, cause: str, answer: Answer) -> None:
    """Whether the reasons of an answer are what made the execution wait."""
    codes = {reason.code for reason in answer.reasons}
    shown = (run, cause, answer)
    assert answer.verdict == ("ran" if run.ended_at >= 0 else "running"), shown
    assert answer.late_ms == run.granted_at - run.due_at, shown
    if cause == AT_ONCE:
        limited = {"limit", "limit_paused", "permit_held", "permits_came"}
        assert not codes & (limited | {"workers_busy", "no_worker"}), shown
    elif cause == PAUSED:
        assert "limit_paused" in codes, shown
    elif cause == IDLE:
        assert codes & {"workers_busy", "no_worker"}, shown
        assert "limit_paused" not in codes, shown
    else:
        assert "limit" in codes, shown
        assert not codes & {"limit_paused", "workers_busy", "no_worker"}, shown
        (limit,) = [reason for reason in answer.reasons if reason.code == "limit"]
        assert run.limit in limit.text, shown
        assert ("within" in limit.text) is (cause == RATED), shown
    if cause == FULL:
        assert named(answer) == weeks.holders(run), shown
        out = [int(reason.text.split(" ")[0]) for reason in answer.reasons if reason.code == "permit_out"]
        assert max(out, default=0) <= CONCURRENCY_MAX, shown


def named(answer: Answer) -> set[str]:
    """Executions that an answer says held a permit."""
    return {reason.text.split(" ")[0] for reason in answer.reasons if reason.code == "permit_held"}
