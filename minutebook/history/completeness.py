"""Is every instant that schedules imply accounted for? Frames of a partition go in, ledgers of its jobs come out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from minutebook.domain import events as facts
from minutebook.domain.events import Event
from minutebook.domain.state import NONE_AT, UNCHANGED
from minutebook.domain.versions import version_of
from minutebook.history.ledger import Ledger, Range
from minutebook.wire.frames import Frame

ENDS: Final = ("succeeded", "dead", "cancelled", "skipped")


class _Piece(msgspec.Struct, frozen=True, order=True):
    """Instants of one job on record: an execution, or (`reason`) a stretch that was skipped."""

    first_at: int
    last_at: int
    count: int
    reason: str


class Calendar(msgspec.Struct, frozen=True):
    """A calendar as the partition knows it."""

    first_days: list[int]
    last_days: list[int]


class Completeness:
    """The jobs of one partition, or `only` one of them (tenant, job id). `now` is the time of the last frame."""

    def __init__(self, asked: Range, only: tuple[str, str] | None = None) -> None:
        self.ledgers: dict[tuple[str, str], Ledger] = {}
        self.ends: dict[str, Counter[str]] = {}
        """By tenant, how executions of the range ended."""
        self.zone_data: set[str] = set()
        """Versions of the zone data that owners decided by."""
        self.now = 0
        self._asked = asked
        self._only = only
        self._calendars: dict[tuple[str, str], Calendar] = {}
        self._pieces: dict[tuple[str, str], list[_Piece]] = {}
        self._undecided: set[tuple[str, str]] = set()
        """Jobs that a command of this frame made, edited or resumed: what they owe is decided after it."""

    def take(self, frame: Frame) -> None:
        """The next valid frame."""
        self.now = frame.now
        self.zone_data.add(frame.tzdata)
        for event in frame.events:
            read = _READERS.get(type(event))
            if read is not None and (self._only is None or _may_be_about(event, *self._only)):
                read(self, event)
        for subject in list(self._pieces):
            self._settle(subject)
        self._undecided.clear()

    def finish(self) -> None:
        """The log ends here."""
        for ledger in self.ledgers.values():
            ledger.finish(self.now)

    # -- definitions

    def _submitted(self, event: facts.JobSubmitted) -> None:
        subject = event.tenant, event.job_id
        ledger = self.ledgers[subject] = Ledger(self._asked, self._known(event.tenant))
        ledger.define(*subject, version_of(event), event.next_at, event.accepted_at)
        self._undecided.add(subject)

    def _known(self, tenant: str) -> Callable[[str], Calendar | None]:
        return lambda name: self._calendars.get((tenant, name))

    def _edited(self, event: facts.JobEdited) -> None:
        job = event.job
        ledger = self._settled(job.tenant, job.job_id)
        ledger.define(job.tenant, job.job_id, version_of(job), job.next_at, job.accepted_at)
        self._undecided.add((job.tenant, job.job_id))

    def _paused(self, event: facts.JobPaused) -> None:
        self._settled(event.tenant, event.job_id).pause()

    def _resumed(self, event: facts.JobResumed) -> None:
        self._settled(event.tenant, event.job_id).resume()
        self._undecided.add((event.tenant, event.job_id))

    def _cancelled(self, event: facts.JobCancelled) -> None:
        self._settled(event.tenant, event.job_id).cancel(event.accepted_at)
        self._end(event.tenant, event.executions, "cancelled")

    def _copied(self, event: facts.CalendarCopied) -> None:
        subject = event.tenant, event.name
        if event.is_deleted:
            self._calendars.pop(subject, None)
        else:
            self._calendars[subject] = Calendar(event.first_days, event.last_days)
        for (tenant, job_id), ledger in self.ledgers.items():
            if tenant == event.tenant and ledger.uses(event.name):
                self._settle((tenant, job_id))
                ledger.dates_changed(self.now, is_undecided=(tenant, job_id) in self._undecided)

    # -- instants

    def _came(self, event: Any) -> None:
        rows = zip(event.tenant, event.executions, event.scheduled_at, event.next_at, strict=True)
        for tenant, execution, at, next_at in rows:
            if next_at != UNCHANGED:
                self._note(event.tenants[tenant], execution.rpartition(":")[0], _Piece(at, at, 1, ""))

    def _placed(self, event: facts.ExecutionsPlaced) -> None:
        if event.cause != "backfill":
            for at in event.scheduled_at:
                self._note(event.tenant, event.job_id, _Piece(at, at, 1, ""))

    def _skipped(self, event: facts.ExecutionsSkipped) -> None:
        piece = _Piece(event.first_at, event.last_at, event.count, event.reason)
        self._note(event.tenant, event.job_id, piece)

    def _note(self, tenant: str, job_id: str, piece: _Piece) -> None:
        if self._only in (None, (tenant, job_id)):
            self._pieces.setdefault((tenant, job_id), []).append(piece)

    def _settled(self, tenant: str, job_id: str) -> Ledger:
        """A job's ledger, told all that the frame has said of its instants so far."""
        self._settle((tenant, job_id))
        return self.ledgers[tenant, job_id]

    def _settle(self, subject: tuple[str, str]) -> None:
        """In order of instants: what a frame decides together it may say in any order."""
        pieces = self._pieces.pop(subject, None)
        if pieces is None:
            return
        ledger = self.ledgers[subject]
        for piece in sorted(pieces):
            if piece.reason:
                ledger.skipped(piece.reason, piece.first_at, piece.last_at, piece.count)
            else:
                ledger.ran(piece.first_at)

    # -- how executions end

    def _succeeded(self, event: facts.AttemptsSucceeded) -> None:
        for tenant, execution in zip(event.tenant, event.executions, strict=True):
            self._end(event.tenants[tenant], (execution,), "succeeded")

    def _dead(self, event: facts.ExecutionDead) -> None:
        self._end(event.tenant, (event.execution,), "dead")

    def _redriven(self, event: facts.ExecutionRedriven) -> None:
        self._end(event.tenant, (event.execution,), "dead", -1)

    def _expired(self, event: facts.ExecutionExpired) -> None:
        self._end(event.tenant, (event.execution,), "skipped")

    def _stopped(self, event: facts.AttemptCancelled) -> None:
        self._end(event.tenant, (event.execution,), "cancelled")

    def _execution_cancelled(self, event: facts.ExecutionCancelled) -> None:
        if event.token == NONE_AT:
            self._end(event.tenant, (event.execution,), "cancelled")

    def _end(self, tenant: str, executions: list[str] | tuple[str, ...], how: str, by: int = 1) -> None:
        for execution in executions:
            suffix = execution.rpartition(":")[2]
            if suffix.isdecimal() and self._asked.holds(int(suffix)):
                self.ends.setdefault(tenant, Counter())[how] += by

    def jobs_of(self, tenant: str | None) -> Iterator[tuple[str, str, Ledger]]:
        """(tenant, job id, ledger) of a tenant's jobs, or of all."""
        for (owner, job_id), ledger in self.ledgers.items():
            if tenant in (None, owner):
                yield owner, job_id, ledger


_READERS: Final[dict[type[Event], Callable[[Completeness, Any], None]]] = {
    facts.JobSubmitted: Completeness._submitted,
    facts.JobEdited: Completeness._edited,
    facts.JobPaused: Completeness._paused,
    facts.JobResumed: Completeness._resumed,
    facts.JobCancelled: Completeness._cancelled,
    facts.CalendarCopied: Completeness._copied,
    facts.ExecutionsQueued: Completeness._came,
    facts.ExecutionsDueGranted: Completeness._came,
    facts.ExecutionsPlaced: Completeness._placed,
    facts.ExecutionsSkipped: Completeness._skipped,
    facts.AttemptsSucceeded: Completeness._succeeded,
    facts.ExecutionDead: Completeness._dead,
    facts.ExecutionRedriven: Completeness._redriven,
    facts.ExecutionExpired: Completeness._expired,
    facts.AttemptCancelled: Completeness._stopped,
    facts.ExecutionCancelled: Completeness._execution_cancelled,
}


def _may_be_about(event: Any, tenant: str, job_id: str) -> bool:
    """Whether an event can say anything of that job; the rows of columns are looked at one by one."""
    about = event.job if isinstance(event, facts.JobEdited) else event
    if isinstance(event, facts.CalendarCopied):
        return bool(event.tenant == tenant)
    return not hasattr(about, "job_id") or (about.tenant, about.job_id) == (tenant, job_id)
