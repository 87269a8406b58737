"""One cycle of an owner: what is due first, then reports, mail and commands, last grants, withdrawals and lease ends.

Decides into a draft, changes nothing but what is in memory, sends nothing. `Redo` says that an input made `decide`
fail: the caller forgets the draft, and the next one records that input as refused instead of deciding it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final, NamedTuple

import structlog

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.commands import Command, DeclareQueue
from minutebook.domain.decide import decide
from minutebook.domain.due import Due, Names, due_granted_event, due_of, queued_event
from minutebook.domain.grants import Plan, Takers
from minutebook.domain.offers import Session
from minutebook.domain.outputs import GRANT_PAYLOAD_BYTES_MAX
from minutebook.domain.records import ForwardedCommand, Inbox, Mail, QueueFact, Report, Tick
from minutebook.errors import DecodeError
from minutebook.log.port import RawRecord
from minutebook.wire import codec, topics
from minutebook.wire.codec import CommandBatch
from minutebook.wire.frames import Slice
from streams.draft import Draft
from streams.feed import Feed
from streams.lanes import Lanes
from streams.reports import Reports
from streams.sessions import Sessions
from streams.window import Window

DUE_MS: Final = 10
INPUTS_MS: Final = {topics.REPORTS: 25, topics.MAIL: 5, topics.COMMANDS: 10}
"""Results come first: they free slots, and many in one frame cost less than one a frame."""
REMEMBERED_DAYS: Final = 8
ROWS_AT_ONCE: Final = 1_000
"""A busy machine stretches the clock: so many rows go into a frame all the same, for a frame has its own cost."""
STRETCH_S: Final = 0.05
"""But no topic takes longer than this beyond its time."""
DUE_ROWS_MAX: Final = 4_000
GRANT_ROWS_MAX: Final = 8_000
INPUT_BYTES_MAX: Final = 1 << 20
MAIL_MORE_BYTES: Final = 4 << 10
"""What mail puts around a forwarded command."""

log = structlog.get_logger()


class Redo(Exception):
    """An input on which `decide` failed: (topic, offset)."""

    def __init__(self, topic: str, offset: int) -> None:
        super().__init__(f"{topic} {offset}")
        self.place = (topic, offset)


_Row = tuple[str, str, int, Session]
"""(tenant, execution id, attempt, session) of a grant."""


class Taken(NamedTuple):
    """What a cycle took out of memory, to be put back if its frame is void."""

    due: list[bytes]
    queued: list[bytes]
    inputs: dict[str, list[RawRecord]]


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
    ) -> None:
        self._book = book
        self._feeds = feeds
        self._partition = partition
        self._partitions = partitions
        self._monotonic = monotonic
        self._last_tenant: dict[str, str] = defaultdict(str)
        self.sessions = sessions
        self.poisoned: set[tuple[str, int]] = set()
        self.rejected: dict[tuple[str, int], RawRecord] = {}
        """Records rejected by the frame in the making, as they came."""
        self.index = Window(book.rows, "index", keys.index_bound(book.cursor.index_low), None)
        self.lanes = Lanes(book.rows)
        self.reports = Reports(book, sessions, partition, owner_id)
        self.can_grant = False

    def decide(self, offset: int, now: int) -> tuple[Draft, Taken]:
        """A draft for `offset` at `now`. Raises Redo; what was taken out is put back then."""
        draft = Draft(self._book, offset, now)
        taken = Taken([], [], defaultdict(list))
        try:
            self._forget(draft)
            self._due(draft, taken)
            for topic in topics.INPUTS:
                self._inputs(topic, draft, taken)
            self._end_leases(draft)
            if self.can_grant:
                self._grant(draft, taken)
        except Redo as redo:
            self.poisoned.add(redo.place)
            self.restore(taken)
            raise
        return draft, taken

    def restore(self, taken: Taken) -> None:
        """Put back what a forgotten draft had taken out of memory."""
        self._book.discard()
        for key in taken.due:
            self.index.put(key)
        self.lanes.put_back(taken.queued)
        for topic, records in taken.inputs.items():
            self._feeds[topic].put_back(records)
        self.sessions.plan_over()
        self.reports.forget()
        self.rejected.clear()

    def _forget(self, draft: Draft) -> None:
        """Days whose closed jobs, command ids and ended sessions are remembered no longer."""
        today = draft.now // keys.DAY_MS
        for day in [day for day in self._book.cursor.days if today - day > REMEMBERED_DAYS]:
            draft.add(facts.DayForgotten(day))

    # -- due

    def next_due_at(self) -> int | None:
        """Instant of the next row of the time index; None if there is none."""
        head = self.index.head()
        return None if head is None else keys.index_parts(head)[0]

    def _due(self, draft: Draft, taken: Taken) -> None:
        bound = keys.index_bound(draft.now + 1)
        until = self._monotonic() + DUE_MS / 1000
        rows: list[Due] = []
        key = b""
        while len(rows) < DUE_ROWS_MAX and (head := self.index.head()) is not None and head < bound:
            key = head
            self.index.pop()
            taken.due.append(key)
            self._one_due(draft, key, rows)
            if len(rows) >= ROWS_AT_ONCE and self._monotonic() > until:
                break
        if taken.due:
            self._record_due(draft, rows)
            draft.slices.append(Slice("", -1, key, len(draft.events)))

    def _one_due(self, draft: Draft, key: bytes, rows: list[Due]) -> None:
        if self.poisoned and _due_place(key) in self.poisoned:
            return
        try:
            found, skipped = due_of(self._book, key, draft.now)
            if skipped is not None:
                draft.add(skipped)
        except Exception as error:
            log.exception("a due row cannot be decided", partition=self._partition, key=key.hex())
            raise Redo(*_due_place(key)) from error
        rows += found

    def _record_due(self, draft: Draft, rows: list[Due]) -> None:
        """Granted where nothing waits before it and somebody offers, else queued."""
        takers = Takers(self.sessions, draft.now) if self.can_grant else None
        if not takers:
            if rows:
                draft.add(queued_event(rows))
            return
        is_direct = {queue: not self.lanes.has_queued(queue) for queue in {row.queue for row in rows}}
        granted: list[Due] = []
        queued: list[Due] = []
        sessions: list[Session] = []
        payload_bytes = 0
        for row in rows:
            session = takers.best(row.queue, row.task) if is_direct[row.queue] else None
            if session is None or payload_bytes > GRANT_PAYLOAD_BYTES_MAX:
                queued.append(row)
                continue
            takers.take(row.queue, row.task)
            payload_bytes += row.payload_bytes
            granted.append(row)
            sessions.append(session)
        if granted:
            self._start_sessions(draft, sessions)
            draft.add(due_granted_event(granted, [session.name for session in sessions]))
        if queued:
            draft.add(queued_event(queued))

    def _start_sessions(self, draft: Draft, sessions: list[Session]) -> None:
        """A session's first grant is preceded by who it is."""
        for session in {session.name: session for session in sessions}.values():
            if self._book.sessions.get(session.name.encode()) is None:
                tasks = sorted(session.tasks)
                draft.add(
                    facts.SessionStarted(
                        session.name, session.worker, tasks, session.lease_ms, session.pulse_ms
                    )
                )

    # -- inputs

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
        if (topic, record.offset) in self.poisoned:
            draft.add(facts.InputRefused(topic, record.offset, 0, "internal_error"))
            return
        since = draft.bytes
        try:
            self._decoded(topic, record, _decode(topic, record.value), draft)
        except DecodeError as error:
            self._reject(topic, record, str(error), draft)
        except Exception as error:
            log.exception(
                "an input cannot be decided", partition=self._partition, topic=topic, offset=record.offset
            )
            raise Redo(topic, record.offset) from error
        draft.weigh(since, len(record.value or b""))

    def _decoded(self, topic: str, record: RawRecord, decoded: codec.Record, draft: Draft) -> None:
        if topic == topics.REPORTS and isinstance(decoded, Report):
            self.reports.take(decoded, record.stamp, draft)
        elif topic == topics.REPORTS and isinstance(decoded, Tick):
            self.reports.tick(decoded, record.stamp, draft.now)
        elif topic == topics.MAIL and isinstance(decoded, Mail):
            self._mail(decoded, record, draft)
        elif topic == topics.COMMANDS and isinstance(decoded, CommandBatch):
            for command in decoded.commands:
                self._command(command, record, draft)
        elif topic == topics.COMMANDS and isinstance(decoded, Command):
            reason = _misaddressed(decoded, record.key)
            if reason:
                self._reject(topic, record, reason, draft)
            else:
                self._command(decoded, record, draft)
        else:
            self._reject(topic, record, f"a {type(decoded).__name__} does not belong on {topic}", draft)

    def _reject(self, topic: str, record: RawRecord, reason: str, draft: Draft) -> None:
        self.rejected[topic, record.offset] = record
        draft.add(facts.RecordRejected(topic, self._partition, record.offset, reason))

    def _command(self, command: Command, record: RawRecord, draft: Draft) -> None:
        target = topics.partition_of(_key(command), self._partitions)
        if target == self._partition:
            self._decide(command, record.stamp, draft)
            return
        tenant, job_id = (
            ("", command.name) if isinstance(command, DeclareQueue) else (command.tenant, command.job_id)
        )
        draft.add(
            facts.CommandForwarded(
                target, tenant, job_id, command.command_id, record.stamp, record.offset, codec.encode(command)
            )
        )

    def _decide(self, command: Command, stamp: int, draft: Draft) -> None:
        for event in decide(self._book, command, stamp):
            draft.add(event)

    def _mail(self, mail: Mail, record: RawRecord, draft: Draft) -> None:
        if (mail.frame, mail.row) <= self._book.cursor.mail.get(mail.sender, (-1, -1)):
            return
        draft.add(facts.MailTaken(mail.sender, mail.frame, mail.row))
        match mail.body:
            case QueueFact() as fact:
                draft.add(facts.QueueCopied(fact.name, fact.version, fact.is_open, fact.tenants))
            case ForwardedCommand() as forwarded:
                self._forwarded(forwarded, record, draft)

    def _forwarded(self, forwarded: ForwardedCommand, record: RawRecord, draft: Draft) -> None:
        """A command from another partition; one that does not belong here either is not sent on again."""
        try:
            command = codec.decode(forwarded.command)
        except DecodeError as error:
            self._reject(topics.MAIL, record, str(error), draft)
            return
        if (
            isinstance(command, Command)
            and topics.partition_of(_key(command), self._partitions) == self._partition
        ):
            self._decide(command, forwarded.accepted_at, draft)
        else:
            self._reject(topics.MAIL, record, "a forwarded command that does not belong here", draft)

    # -- grants, withdrawals, lease ends

    def _end_leases(self, draft: Draft) -> None:
        for session in self.sessions.over():
            self.reports.end(session, "lease_over", draft)
        for session, tokens in self.sessions.unacknowledged():
            self.reports.withdraw(session, tokens, draft)

    def _grant(self, draft: Draft, taken: Taken) -> None:
        takers = Takers(self.sessions, draft.now)
        if not takers:
            return
        rows: list[_Row] = []
        payload_bytes = 0
        for queue, lanes in self.lanes.by_queue.items():
            plan = Plan(queue, lanes.values(), takers, self._last_tenant[queue])
            for grant in plan.grants():
                taken.queued.append(grant.row)
                key = grant.tenant.encode() + b"\0" + grant.execution
                execution = self._book.executions.get(key)
                if execution is None or execution.status != "queued":
                    continue
                spec = self._book.specs.get(keys.spec_row(key[: key.rindex(b":")], execution.version))
                payload_bytes += 0 if spec is None else len(spec.payload)
                rows.append((grant.tenant, grant.execution.decode(), execution.attempt, grant.session))
                if len(rows) >= GRANT_ROWS_MAX or payload_bytes > GRANT_PAYLOAD_BYTES_MAX:
                    break
            self._last_tenant[queue] = plan.last_tenant
        if rows:
            self._record_grants(draft, rows)

    def _record_grants(self, draft: Draft, rows: list[_Row]) -> None:
        self._start_sessions(draft, [session for _, _, _, session in rows])
        tenants, sessions = Names(), Names()
        draft.add(
            facts.ExecutionsGranted(
                tenant=tenants.column([tenant for tenant, _, _, _ in rows]),
                executions=[name for _, name, _, _ in rows],
                attempts=[attempt for _, _, attempt, _ in rows],
                session=sessions.column([session.name for _, _, _, session in rows]),
                tenants=tenants.texts,
                sessions=sessions.texts,
                permits=[],
            )
        )

    def follow(self) -> None:
        """What is about to be committed, for the structures in memory. Call it right before the commit."""
        for key, value in self._book.index.pending.items():
            if value is None:
                self.index.remove(key)
            else:
                self.index.put(key)
        self.lanes.follow(self._book.queued.pending)
        self.sessions.follow()
        self.sessions.plan_over()

    def queued_for(self, session: Session) -> list[int]:
        """How much is queued that the session could run, by priority."""
        found = [0] * 10
        for queue in session.queues:
            for prefix, (lane, _) in self.lanes.by_queue.get(queue, {}).items():
                if lane.task in session.tasks:
                    found[lane.priority] += self._book.counts.get(prefix) or 0
        return found

    def has_grantable(self, now: int) -> bool:
        """Whether something queued could be granted at once."""
        takers = Takers(self.sessions, now)
        if not takers:
            return False
        return any(
            takers.best(queue, lane.task) is not None
            for queue, lanes in self.lanes.by_queue.items()
            for lane, window in lanes.values()
            if window.head() is not None
        )

    def replies(self) -> list[Inbox]:
        """Inbox records that answer reports of this cycle; they are not sent again after a crash."""
        return self.reports.replies()


def _decode(topic: str, value: bytes | None) -> codec.Record:
    """The record in `value`. Raises DecodeError, also for what could make a frame larger than the broker takes."""
    limit = INPUT_BYTES_MAX + (MAIL_MORE_BYTES if topic == topics.MAIL else 0)
    if value is not None and len(value) > limit:
        raise DecodeError(f"a record of {len(value)} bytes; the limit is {limit}")
    return codec.decode(value)


def _due_place(key: bytes) -> tuple[str, int]:
    return "", int.from_bytes(key, "big")


def _key(command: Command) -> str:
    if isinstance(command, DeclareQueue):
        return ids.queue_key(command.name)
    return ids.job_key(command.tenant, command.job_id)


def _misaddressed(command: Command, key: bytes | None) -> str:
    """Why a single command cannot be taken as addressed; empty if it can."""
    if not isinstance(command, DeclareQueue) and not (
        ids.is_name(command.tenant) and ids.is_name(command.job_id)
    ):
        return "a command without a valid tenant and job id"
    if key is not None and key != _key(command).encode():
        return "key and body name different jobs"
    return ""
