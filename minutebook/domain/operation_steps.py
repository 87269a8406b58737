"""A partition's share of a bulk operation, step by step: first it counts what is meant, then it works.

Every step looks at a bounded number of rows and ends with `OperationAdvanced`, which says how far it came: a fresh owner
goes on from there. A kind of operation is a row of `KINDS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from minutebook import ids
from minutebook.domain import backfill, job_operations, keys
from minutebook.domain import events as facts
from minutebook.domain.book import Book
from minutebook.domain.commands import DiscardExecution, RedriveExecution
from minutebook.domain.decide import decide
from minutebook.domain.events import Event
from minutebook.domain.operation import OperationFact, Share
from minutebook.domain.operation_kind import Found, Kind
from minutebook.domain.operations import count_of, counted
from minutebook.domain.refusal import Refusal
from minutebook.domain.state import NONE_AT, DeadExecution, Spec

LOOKED_AT_MAX: Final = 400
"""Rows that one step looks at, whether they are meant or not."""
DONE_MAX: Final = 100
"""Executions or jobs that one step does something to."""
RATE_OF_PARTITION_MAX_PER_S: Final = 1_000
BURST_MS: Final = 1_000
"""Work that could not be done in its time is made up for as far back."""
WAITING_MAX: Final = 1_000
"""While so many of one kind wait for a worker, no more of them are added: live work must not wait behind thousands."""
REPORT_EVERY_MS: Final = 1_000


replace = msgspec.structs.replace


def advance(book: Book, share: Share, now: int) -> Iterator[Event]:
    """Events of the next step of a share at `now`; none where nothing can be done yet.

    Each must be folded before the next is asked for. `OperationAdvanced` says how far the share is; at the home what it
    tells follows at once.
    """
    for event in _step(book, share, now):
        yield event
        if (
            isinstance(event, facts.OperationAdvanced)
            and event.is_reported
            and event.home == book.cursor.partition
        ):
            yield from counted(book, event.home, count_of(event))


def _step(book: Book, share: Share, now: int) -> Iterator[Event]:
    if share.fact.is_cancelled:
        yield _advanced(share, now, is_finished=True)
    elif now <= share.fact.accepted_at:
        return  # what is given up from here on could still be older than the command, by the broker's clock
    else:
        try:
            yield from _work(book, share, now) if share.matched >= 0 else _counted_further(book, share, now)
        except Refusal as refusal:
            yield from _given_up(share, refusal, now)


def _counted_further(book: Book, share: Share, now: int) -> Iterator[Event]:
    """What is meant is counted first, so that everybody can be told how much there is."""
    total = KINDS[share.fact.kind].total
    if total is not None:
        yield _counted_all(book, share, total(book, share.fact), now)
        return
    looked_at = list(islice(_rows(book, share), LOOKED_AT_MAX))
    counting = share.counting + sum(1 for found in looked_at if found.execution is not None)
    if len(looked_at) == LOOKED_AT_MAX:
        yield _advanced(replace(share, counting=counting, through=looked_at[-1].place), now)
    else:
        yield _counted_all(book, share, counting, now)


def _counted_all(book: Book, share: Share, matched: int, now: int) -> Event:
    next_at = _first_at(share.fact, book.cursor.partition)
    all_of_it = replace(share, matched=matched, counting=matched, through=b"", next_at=next_at)
    return _advanced(all_of_it, now, is_finished=not matched, is_news=True)


def _first_at(fact: OperationFact, partition: int) -> int:
    """When a partition begins to work: where a rate is set, one after the other."""
    return fact.accepted_at + 1 + (partition * 1_000 // fact.rate_per_s if fact.rate_per_s else 0)


def _work(book: Book, share: Share, now: int) -> Iterator[Event]:
    kind, pace = KINDS[share.fact.kind], _Pace.of(share, book.cursor.partitions)
    most = pace.allowance(now)
    if not most:
        return
    if kind.most is not None:
        most = min(most, kind.most(book, share.fact))
    looked, is_blocked = _taken_on(book, share, most)
    if not looked:
        if not is_blocked:
            yield _advanced(share, now, is_finished=True)
        return
    done, refused = 0, 0
    executions = [found.execution for found in looked if found.execution and not found.is_refused]
    for event in kind.act(book, share.fact, executions, now):
        yield event
        if isinstance(event, facts.CommandRejected):
            refused += 1
        else:
            done += kind.done(event)
    after = replace(
        share,
        done=share.done + done,
        refused=share.refused + refused + sum(found.is_refused for found in looked),
        through=looked[-1].place,
        next_at=pace.after(now, done + refused),
    )
    yield _advanced(after, now, is_finished=not is_blocked and len(looked) < LOOKED_AT_MAX)


def _taken_on(book: Book, share: Share, most: int) -> tuple[list[Found], bool]:
    """What is looked at in this step, with at most so many executions; whether it ends before one that must wait."""
    lane, looked = KINDS[share.fact.kind].lane, list[Found]()
    for found in islice(_rows(book, share), LOOKED_AT_MAX):
        if found.execution is not None and not found.is_refused:
            if not most or not _has_room(book, lane(book, found.place)):
                return looked, True
            most -= 1
        looked.append(found)
    return looked, False


def _has_room(book: Book, lane: bytes | None) -> bool:
    """Whether few enough wait for a worker in that lane."""
    return lane is None or (book.counts.get(lane) or 0) < WAITING_MAX


def _given_up(share: Share, refusal: Refusal, now: int) -> Iterator[Event]:
    """Nothing more of it can be done here, and why: all that is left is refused."""
    fact, job_id = share.fact, share.fact.filter.job_id
    command_id = ids.operation_command_id(fact.tenant, job_id, fact.operation)
    yield facts.CommandRejected(
        fact.tenant,
        job_id,
        command_id,
        "StartOperation",
        refusal.reason,
        refusal.field,
        refusal.detail,
        fact.actor,
        fact.reason,
    )
    left = max(0, share.matched) - share.done - share.refused
    yield _advanced(replace(share, refused=share.refused + max(0, left)), now, is_finished=True)


def _rows(book: Book, share: Share) -> Iterator[Found]:
    """What lies behind the place that the share has reached."""
    return KINDS[share.fact.kind].rows(book, share.fact, share.through)


def _advanced(share: Share, now: int, *, is_finished: bool = False, is_news: bool = False) -> Event:
    """How far the share is. The home is told once it is counted and finished, and in between now and then."""
    fact = share.fact
    is_owed = now - share.reported_at >= REPORT_EVERY_MS
    return facts.OperationAdvanced(
        tenant=fact.tenant,
        operation=fact.operation,
        home=fact.home,
        matched=share.done + share.refused if is_finished and not fact.is_cancelled else share.matched,
        counting=share.counting,
        done=share.done,
        refused=share.refused,
        through=share.through,
        next_at=share.next_at,
        is_finished=is_finished,
        is_reported=is_finished or is_news or is_owed,
    )


class _Pace(NamedTuple):
    """One piece of work each `partitions` x 1,000 / `rate_per_s` ms, from `next_at` on, by the time of the log."""

    next_at: int
    rate_per_s: int
    partitions: int

    @classmethod
    def of(cls, share: Share, partitions: int) -> _Pace:
        """The pace of a share: its part of the rate that was asked for, and never above what a partition may."""
        rate = share.fact.rate_per_s
        if not rate or rate > RATE_OF_PARTITION_MAX_PER_S * partitions:
            return cls(share.next_at, RATE_OF_PARTITION_MAX_PER_S, 1)
        return cls(share.next_at, rate, partitions)

    def _start(self, now: int) -> int:
        return max(self.next_at, now - BURST_MS)

    def allowance(self, now: int) -> int:
        """How many pieces may be done at `now`."""
        late_ms = now - self._start(now)
        return 0 if late_ms < 0 else min(DONE_MAX, late_ms * self.rate_per_s // (1_000 * self.partitions) + 1)

    def after(self, now: int, done: int) -> int:
        """When the next piece may be done, `done` having been done at `now`."""
        return (
            self._start(now) - (-done * 1_000 * self.partitions // self.rate_per_s) if done else self.next_at
        )


# -- redrive and discard


def _dead_rows(book: Book, fact: OperationFact, through: bytes) -> Iterator[Found]:
    """Dead executions of the tenant, day by day, in order of keys; of those that are not meant only the place."""
    prefix = keys.execution_row(fact.tenant, fact.filter.job_prefix)
    until_at = (
        fact.accepted_at if fact.filter.until_at == NONE_AT else min(fact.accepted_at, fact.filter.until_at)
    )
    for day in sorted(book.cursor.days):
        if not fact.filter.from_at // keys.DAY_MS <= day <= until_at // keys.DAY_MS:
            continue
        start = keys.remembered_row(day, prefix)
        for place, dead in book.dead.walk(max(start, through + b"\0"), keys.after(start)):
            is_meant = dead.given_up_at < fact.accepted_at and _fits(book, fact, place, dead)
            yield Found(place, place[keys.DAY_BYTES :] if is_meant else None)


def _fits(book: Book, fact: OperationFact, place: bytes, dead: DeadExecution) -> bool:
    wanted = fact.filter
    if dead.is_discarded or not wanted.fits_end(dead.given_up_at, dead.cause, dead.error_type):
        return False
    if not wanted.asks_for_work():
        return True
    spec = _shelved(book, place, dead)
    return spec is not None and wanted.fits_work(spec.task, spec.queue)


def _shelved(book: Book, place: bytes, dead: DeadExecution) -> Spec | None:
    """The version that the dead execution at that place ran with: it lies in the same day."""
    return book.shelf.get(keys.spec_row(keys.job_of_execution(place), dead.version))


def _dead_lane(book: Book, place: bytes) -> bytes | None:
    """Where the execution would wait; None if its version is forgotten."""
    dead = book.dead.get(place)
    spec = None if dead is None else _shelved(book, place, dead)
    return None if spec is None else spec.lane(keys.names(place[keys.DAY_BYTES :])[0]).prefix()


def _no_lane(book: Book, place: bytes) -> None:
    """What is discarded waits for nobody."""


def _change(book: Book, fact: OperationFact, rows: Sequence[bytes], now: int) -> Iterator[Event]:
    """What a command to each would be answered; the command's id makes a repeat harmless."""
    for row in rows:
        tenant, name = keys.names(row)
        command = _COMMANDS[fact.kind](
            tenant=tenant,
            job_id=ids.job_of(name),
            command_id=ids.operation_command_id(tenant, name, fact.operation),
            issued_at=now,
            actor=fact.actor,
            reason=fact.reason,
            execution=name,
        )
        for event in decide(book, command, now):
            if isinstance(event, facts.ExecutionRedriven | facts.ExecutionDiscarded):
                event = replace(event, operation=fact.operation)
            yield event


_COMMANDS: Final[dict[str, type[RedriveExecution | DiscardExecution]]] = {
    "redrive": RedriveExecution,
    "discard": DiscardExecution,
}
KINDS: Final = {
    "redrive": Kind(_dead_rows, _dead_lane, _change),
    "discard": Kind(_dead_rows, _no_lane, _change),
    "backfill": backfill.KIND,
    **job_operations.KINDS,
}
