"""One cycle of an owner: what is due first, then reports, mail and commands, last grants, withdrawals and lease ends.

Decides into a draft, changes nothing but what is in memory, sends nothing. `Redo` says that an input made `decide`
fail: the caller forgets the draft, and the next one records that input as refused instead of deciding it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import takewhile
from typing import Final

import structlog

from minutebook.domain import events as facts
from minutebook.domain.book import Book
from minutebook.domain.commands import Command
from minutebook.domain.events import Event
from minutebook.domain.records import (
    Inbox,
    Report,
    Tick,
)
from minutebook.errors import DecodeError
from minutebook.log.draft import Draft
from minutebook.log.inputs import days_over, decide_input, read_input
from minutebook.log.port import RawRecord
from minutebook.wire import codec, topics
from minutebook.wire.frames import Slice
from streams import metrics
from streams.asking import Asking
from streams.claims import Claims
from streams.due_rows import DueRows
from streams.feed import Feed
from streams.gathering import GATHER_S
from streams.granting import Granting
from streams.lanes import Lanes
from streams.open_queues import OpenQueues
from streams.operating import Operating
from streams.permits import Permits
from streams.process import Burst
from streams.repeats import Repeats
from streams.reports import Reports
from streams.rescheduling import Rescheduler
from streams.sessions import Sessions
from streams.taken import Redo, Taken
from streams.telling import Telling
from streams.unknown_tasks import UnknownTasks

INPUTS_MS: Final = {topics.REPORTS: 25, topics.MAIL: 5, topics.COMMANDS: 10}
"""Results come first: they free slots, and many in one frame cost less than one a frame."""
ROWS_AT_ONCE: Final = 1_000
"""A busy machine stretches the clock: so many rows go into a frame all the same, for a frame has its own cost."""
STRETCH_S: Final = 0.05
"""But no topic takes longer than this beyond its time."""
RESULTS_WAIT_MS: Final = 5_000
"""In a burst results wait so long at most for starts: the broker has them, and their offers were heard."""
RESULTS_WAITING_MAX: Final = 1_000
GATHER_MS_MAX: Final = int(2_000 * GATHER_S)
"""Idle pulses gather so long, and as long again on a busy machine."""
_OUTCOMES: Final = {facts.CommandRejected: "refused", facts.CommandAnswered: "repeated"}
"""What the first event says of a command, where it is not accepted."""

log = structlog.get_logger()


class Cycle:
    """Everything that one partition's cycles decide with."""

    def __init__(
        self,
        book: Book,
        feeds: dict[str, Feed],
        sessions: Sessions,
        partition: int,
        partitions: int,
        owner_id: str,
        monotonic: Callable[[], float],
        burst: Burst,
    ) -> None:
        self._book = book
        self._feeds = feeds
        self._partition = partition
        self._partitions = partitions
        self._monotonic = monotonic
        self.sessions = sessions
        self.rejected: dict[tuple[str, int], RawRecord] = {}
        """Records rejected by the frame in the making, as they came."""
        self._burst = burst
        self._reports_read: dict[int, Report] = {}
        self._repeats = Repeats()
        lanes = Lanes(book.rows)
        self.open_queues = OpenQueues(book, lanes, partition)
        self.due = DueRows(book, partition, monotonic, self.open_queues.names)
        self.permits = Permits(book, lanes, partition, partitions)
        self.granting = Granting(book, self.due, lanes, self.open_queues.names, sessions, self.permits, burst)
        self.claims = Claims(book, sessions, self.permits, partition, self.granting.start_sessions)
        self.telling = Telling(book, sessions, self.granting, partition)
        self.reports = Reports(book, sessions, partition, owner_id)
        self._unknown_tasks = UnknownTasks(book, lanes, self.open_queues.names, sessions)
        self.operating = Operating(book)
        self.rescheduler = Rescheduler(book)
        self.asking = Asking(book, sessions, partition)
        self.can_grant = False
        self.decided: Counter[tuple[str, str, int]] = Counter()
        """Commands of the frame in the making: (command, outcome, stamp) -> how many."""

    def decide(self, offset: int, now: int) -> tuple[Draft, Taken]:
        """A draft for `offset` at `now`. Raises Redo; what was taken out is put back then."""
        draft = Draft(self._book, offset, now)
        taken = Taken([], [], defaultdict(list))
        self.decided = Counter()
        try:
            self._forget(draft)
            self.due.read(draft, taken)
            self._hear_ahead(draft.now)
            for topic in topics.INPUTS:
                if topic != topics.REPORTS or not self._may_results_wait(draft.now):
                    self._inputs(topic, draft, taken)
            self._end_leases(draft)
            self._end_overruns(draft)
            if self.can_grant:
                self._say_heard(draft)
                self.granting.grant(draft, taken)
                self._unknown_tasks.look(draft)
            self.due.queue_overdue(draft, taken)
            self.permits.settle(draft)
            self._work_behind(draft)
        except Redo as redo:
            self.due.poisoned.add(redo.place)
            self.restore(taken)
            raise
        return draft, taken

    def _work_behind(self, draft: Draft) -> None:
        """What is done where live work leaves room."""
        if self.operating.has_shares() or self.rescheduler.has_work():
            is_busy = self.is_in_burst(draft.now) or self.granting.has_grantable(draft.now)
            self.rescheduler.work(draft, is_busy=is_busy)
            self.operating.work(draft, is_busy=is_busy)

    def restore(self, taken: Taken) -> None:
        """Put back what a forgotten draft had taken out of memory."""
        self._book.discard()
        self.due.put_back(taken.due)
        self.granting.lanes.put_back(taken.queued)
        for topic, records in taken.inputs.items():
            self._feeds[topic].put_back(records)
        self.sessions.plan_over()
        self.reports.forget()
        self.claims.forget()
        self.permits.look_again()
        self.asking.forget()
        self.rejected.clear()

    def _forget(self, draft: Draft) -> None:
        for event in days_over(self._book, draft.now):
            draft.add(event)

    # -- inputs

    def _hear_ahead(self, now: int) -> None:
        """While something waits for a grant, new offers are heard before the results that came with them are decided."""
        waiting, sessions = self._feeds[topics.REPORTS].waiting, self.sessions
        if not (self.can_grant and waiting and (self.granting.has_waiting() or self.is_in_burst(now))):
            return
        sessions.heard = {at: is_new for at, is_new in sessions.heard.items() if at >= waiting[0].offset}
        fresh = takewhile(lambda record: record.offset > sessions.heard_through, reversed(waiting))
        for record in reversed(list(fresh)):
            sessions.heard_through = record.offset
            self._hear_one(record)

    def _say_heard(self, draft: Draft) -> None:
        """Grants rest on pulses beyond the reports that are decided: a slice without events says through which."""
        waiting, through = self._feeds[topics.REPORTS].waiting, self.sessions.heard_through
        if waiting and waiting[0].offset <= through:
            draft.slices.append(Slice(topics.REPORTS, through, b"", 0))

    def _hear_one(self, record: RawRecord) -> None:
        try:
            report = self._report(record)
            if not isinstance(report, Report) or _is_urgent(report):
                self.sessions.urgent = record.offset
            if isinstance(report, Report):
                self._reports_read[record.offset] = report
                self.reports.hear_ahead(record.offset, report, record.stamp)
        except Exception as error:
            log.debug("report_not_heard_ahead", offset=record.offset, error=str(error))

    def _may_results_wait(self, now: int) -> bool:
        """Starts go first: in a burst, and while something can be granted, results that are young enough wait."""
        feed = self._feeds[topics.REPORTS]
        oldest = feed.oldest_stamp()
        return (
            self.can_grant
            and oldest is not None
            and now - oldest < RESULTS_WAIT_MS
            and feed.waiting[0].offset > self.sessions.urgent
            and feed.has_room()
            and len(feed.waiting) < RESULTS_WAITING_MAX
            and (self.is_in_burst(now) or self.granting.has_grantable(now))
        )

    def is_in_burst(self, now: int) -> bool:
        """Whether more waits in this process than was granted a moment ago, and that was much."""
        return now < self._burst.until

    def is_news(self, record: RawRecord) -> bool:
        """Whether a report on its way here must not wait for others.

        An idle pulse need not: nothing waits for a grant, and its session counts as heard even before it comes.
        """
        session = self.sessions.get(self._repeats.again(record.value))
        if session is None or session.is_void or not session.is_heard(record.stamp + GATHER_MS_MAX):
            return True
        return not self.can_grant or self.granting.has_waiting()

    def next_at(self) -> int | None:
        """When something that is known already must be decided without an input, ms; None if nothing must."""
        instants = (self.due.held.next_at(), self.permits.next_at(), self.rescheduler.next_at())
        return min((at for at in instants if at is not None), default=None)

    def has_news(self) -> bool:
        """Whether an input waits that must not wait: anything but results that were heard."""
        return any(
            feed.waiting
            and (topic != topics.REPORTS or feed.waiting[-1].offset > self.sessions.heard_through)
            for topic, feed in self._feeds.items()
        )

    def _inputs(self, topic: str, draft: Draft, taken: Taken) -> None:
        feed = self._feeds[topic]
        if not feed.waiting:
            return
        until = self._monotonic() + INPUTS_MS[topic] / 1000
        before, rows = len(draft.events), draft.rows
        record: RawRecord | None = None
        while feed.waiting and not draft.is_full():
            record = feed.take()
            taken.inputs[topic].append(record)
            self._one_input(topic, record, draft)
            over_s = self._monotonic() - until
            if over_s > 0 and (draft.rows - rows >= ROWS_AT_ONCE or over_s > STRETCH_S):
                break
        if record is not None:
            draft.slices.append(Slice(topic, record.offset, b"", len(draft.events) - before))

    def _one_input(self, topic: str, record: RawRecord, draft: Draft) -> None:
        if (topic, record.offset) in self.due.poisoned:
            draft.add(facts.InputRefused(topic, record.offset, 0, "internal_error"))
            return
        since = draft.bytes
        try:
            if topic == topics.REPORTS:
                decoded = self._reports_read.pop(record.offset, None) or self._report(record)
            else:
                decoded = read_input(topic, record.value)
            self._decoded(topic, record, decoded, draft)
        except DecodeError as error:
            self._reject(topic, record, str(error), draft)
        except Exception as error:
            log.exception("input_not_decided", partition=self._partition, topic=topic, offset=record.offset)
            raise Redo(topic, record.offset) from error
        draft.weigh(since, len(record.value or b""))

    def _report(self, record: RawRecord) -> codec.Record:
        """What a record of `worker-reports` says. Raises DecodeError."""
        repeat = self._repeats.read(record.value)
        if repeat is not None:
            return repeat
        decoded = read_input(topics.REPORTS, record.value)
        if isinstance(decoded, Report):
            self._repeats.keep(record.value, decoded)
        return decoded

    def _decoded(self, topic: str, record: RawRecord, decoded: codec.Record, draft: Draft) -> None:
        if topic == topics.REPORTS and isinstance(decoded, Report):
            is_taken = self.reports.take(record.offset, decoded, record.stamp, draft)
            if is_taken:
                self.asking.hear(decoded)
            if is_taken and decoded.claims:
                self.claims.take(decoded, record.stamp, draft, can_grant=self.can_grant)
        elif topic == topics.REPORTS and isinstance(decoded, Tick):
            self.reports.tick(decoded, record.stamp, draft.now)
        elif topic == topics.REPORTS:
            self._reject(topic, record, f"a {type(decoded).__name__} does not belong on {topic}", draft)
        else:
            self._news(topic, record, decoded, draft)

    def _news(self, topic: str, record: RawRecord, decoded: codec.Record, draft: Draft) -> None:
        """Commands and mail."""
        before = len(draft.events)
        for event in decide_input(
            self._book, self._partition, self._partitions, topic, record, decoded, self._decided_one
        ):
            if isinstance(event, facts.RecordRejected):
                self.rejected[topic, record.offset] = record
            draft.add(event)
        if topic == topics.MAIL and len(draft.events) == before:
            metrics.DUPLICATES.add(("mail",))

    def _reject(self, topic: str, record: RawRecord, reason: str, draft: Draft) -> None:
        self.rejected[topic, record.offset] = record
        draft.add(facts.RecordRejected(topic, self._partition, record.offset, reason))

    def _decided_one(self, command: Command, stamp: int, events: list[Event]) -> None:
        outcome = _OUTCOMES.get(type(events[0]), "accepted") if events else "repeated"
        self.decided[type(command).__name__, outcome, stamp] += 1

    # -- grants, withdrawals, lease ends

    def _end_leases(self, draft: Draft) -> None:
        if self.sessions.is_settled():
            return
        over, unacknowledged = self.sessions.over(), list(self.sessions.unacknowledged())
        for session in over:
            self.reports.end(session, "lease_over", draft)
        for session, tokens in unacknowledged:
            self.reports.withdraw(session, tokens, draft)
        if not over and not unacknowledged:
            self.sessions.settle()

    def _end_overruns(self, draft: Draft) -> None:
        overruns = self.sessions.overruns
        overruns.look(draft.now)
        if overruns.next_at is not None and overruns.next_at < self.sessions.evidence:
            self.reports.end_overruns(draft)

    def follow(self, draft: Draft) -> None:
        """`draft` is about to be committed, for the structures in memory. Call it right before the commit."""
        self.due.follow()
        self.granting.lanes.follow(self._book.queued.pending)
        self.open_queues.follow(draft.placed, self._book.queued.pending)
        self.operating.follow()
        self.rescheduler.follow()
        self.sessions.follow(draft.placed)
        self.asking.follow(draft.placed)
        self.sessions.plan_over()

    def replies(self, now: int) -> list[Inbox]:
        """Inbox records that answer reports of this cycle, or say what waits; they are not sent again after a crash."""
        told = self.telling.news(now) if self.can_grant else []
        return [*self.reports.replies(), *self.claims.replies(), *self.asking.replies(), *told]


def _is_urgent(report: Report) -> bool:
    """Whether something in it must not wait for starts: a retry, or a task that goes on elsewhere, hangs on it."""
    return bool(report.failed or report.snoozed or report.cancelled or report.progress or report.claims) or (
        report.handed_back is not None
    )
