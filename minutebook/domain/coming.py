"""What becomes of the instants of a schedule that are up: they run, are made up for, held or skipped, all on record."""

from __future__ import annotations

from itertools import groupby, pairwise
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec

from minutebook.domain import events as facts
from minutebook.domain import keys, overlap
from minutebook.domain.book import Book
from minutebook.domain.events import Event
from minutebook.domain.jitter import due_at
from minutebook.domain.job_events import MISFIRE, OVERLAP
from minutebook.domain.missed import GRACE_MS, instants_up
from minutebook.domain.retries import expired_instant
from minutebook.domain.state import NONE_AT, UNCHANGED, Job, Spec

CATCH_UP_PER_S: Final = 20
"""So many instants of one job that are made up for are queued in a second."""

_Piece = facts.ExecutionsPlaced | facts.ExecutionsSkipped


class Coming(NamedTuple):
    """`runs`: (instant, the next one of the schedule) of each that comes due now; `events` are on record before them."""

    runs: list[tuple[int, int]]
    events: list[Event]


class _Fate(NamedTuple):
    """What becomes of an instant: `runs`, or `placed` or `skipped` for that reason."""

    kind: str
    reason: str = ""


_RUNS: Final = _Fate("runs")
_MADE_UP: Final = _Fate("placed", MISFIRE)
_HELD: Final = _Fate("placed", OVERLAP)
_OVERLAPS: Final = _Fate("skipped", OVERLAP)


class _Case(NamedTuple):
    """The recurring job whose next instant is due at `now`."""

    tenant: str
    job_id: str
    job: Job
    spec: Spec
    now: int

    def due_at(self, at: int) -> int:
        """When its instant `at` is due."""
        return due_at(self.tenant, self.job_id, at, self.job.jitter_ms)

    def is_late(self, at: int) -> bool:
        """Whether its instant `at` comes too late to stand with those that come at their time."""
        return self.now - self.job.jitter_ms - at > GRACE_MS

    def skipped(self, reason: str, first_at: int, last_at: int, count: int) -> facts.ExecutionsSkipped:
        """Those instants do not run."""
        return facts.ExecutionsSkipped(self.tenant, self.job_id, reason, first_at, last_at, count, UNCHANGED)

    def placed(self, cause: str, instants: list[int]) -> facts.ExecutionsPlaced:
        """Those instants run apart from the schedule: made up for one after the other, or held."""
        step_ms = 1_000 // CATCH_UP_PER_S
        return facts.ExecutionsPlaced(
            self.tenant,
            self.job_id,
            cause,
            self.job.version,
            instants,
            [self.due_at(at) for at in instants],
            [NONE_AT if cause == OVERLAP else self.now + n * step_ms for n in range(len(instants))],
            UNCHANGED,
        )

    def piece(self, fate: _Fate, instants: list[int]) -> _Piece:
        """What is on record of instants that do not come due now."""
        if fate.kind == "placed":
            return self.placed(fate.reason, instants)
        return self.skipped(fate.reason, instants[0], instants[-1], len(instants))


def coming(book: Book, row: bytes, job: Job, spec: Spec, now: int) -> Coming:
    """What becomes of the next instant of the recurring job in `row`, which is due at `now`, and of all that are up too.

    By the policies of its version, one after the other: misfire, deadlines, overlap, and `max_runs` over what is left.
    """
    tenant, job_id = keys.names(row)
    dropped, kept, next_at = instants_up(book, tenant, job_id, job, spec, now)
    if len(kept) == 1 and dropped is None and _simply_runs(job, spec):
        return Coming([(kept[0], next_at)], [])
    case = _Case(tenant, job_id, job, spec, now)
    expired = {at: why for at in kept if (why := expired_instant(spec.policy, case.due_at(at), now))}
    live = [at for at in kept if at not in expired]
    cleared: list[Event] = []
    is_busy = overlap.is_busy(job)
    if live and is_busy and spec.timing.overlap == "cancel_running":
        cleared, is_busy = overlap.cleared(book, row, now)
    fates = {at: _Fate("skipped", why) for at, why in expired.items()}
    fates |= zip(live, _fates(case, live, is_busy=is_busy), strict=True)
    decided, is_last = _bounded(case, [(at, fates[at]) for at in kept])
    before: list[_Piece] = [] if dropped is None else [case.skipped(MISFIRE, *dropped)]
    found = _on_record(case, before, decided, NONE_AT if is_last else next_at)
    return found._replace(events=[*cleared, *found.events])


def _simply_runs(job: Job, spec: Spec) -> bool:
    """Whether an instant that is kept alone runs: no deadline, overlap or `max_runs` has a say."""
    timing = spec.timing
    return (
        timing.max_runs is None
        and (timing.overlap == "allow" or not overlap.is_busy(job))
        and not spec.policy.has_deadlines
    )


def _fates(case: _Case, instants: list[int], *, is_busy: bool) -> list[_Fate]:
    """What becomes of instants that are to run, the earliest first."""
    policy = case.spec.timing.overlap
    if policy == "allow":
        has_others = len(instants) > 1
        return [_MADE_UP if has_others and case.is_late(at) else _RUNS for at in instants]
    turns = overlap.turns(policy, len(instants), is_busy=is_busy, held=len(case.job.held))
    found = [_RUNS] * turns.running + [_HELD] * turns.held
    skipped = [_OVERLAPS] * turns.skipped
    return [*skipped, *found] if turns.is_latest else [*found, *skipped]


def _bounded(case: _Case, fates: list[tuple[int, _Fate]]) -> tuple[list[tuple[int, _Fate]], bool]:
    """As many of them as `max_runs` leaves, and whether the job has no instant after those: there is none, either."""
    most = case.spec.timing.max_runs
    if most is None:
        return fates, False
    runs = case.job.runs
    for number, (_, fate) in enumerate(fates, 1):
        runs += fate.kind != "skipped"
        if runs >= most:
            return fates[:number], True
    return fates, False


def _on_record(case: _Case, before: list[_Piece], decided: list[tuple[int, _Fate]], next_at: int) -> Coming:
    """Instants in order, behind what is `before` them; then comes `next_at`."""
    runs: list[int] = []
    behind: list[_Piece] = []
    for fate, group in groupby(decided, key=itemgetter(1)):
        instants = [at for at, _ in group]
        if fate == _RUNS:
            runs += instants
        else:
            (behind if runs else before).append(case.piece(fate, instants))
    return Coming(
        list(pairwise([*runs, next_at])), [*_chained(before, runs[0] if runs else next_at), *behind]
    )


def _chained(pieces: list[_Piece], next_at: int) -> list[Event]:
    """`pieces`, each with the first instant of the one behind it as the next of the schedule, the last with `next_at`."""
    found: list[Event] = []
    for piece in reversed(pieces):
        found.append(msgspec.structs.replace(piece, next_at=next_at))
        next_at = piece.first_at if isinstance(piece, facts.ExecutionsSkipped) else piece.scheduled_at[0]
    return found[::-1]
