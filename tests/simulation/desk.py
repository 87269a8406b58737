"""One partition's cycles in memory: the real `Cycle`, its inputs by hand, every frame valid at once. No Kafka, no waiting."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import count

import msgspec

from minutebook.domain import events as facts
from minutebook.domain.book import FAMILIES, Book
from minutebook.domain.commands import CancelJob, Command, DeclareQueue, SubmitJob
from minutebook.domain.events import Event
from minutebook.domain.outputs import ToSession, outputs
from minutebook.domain.records import (
    CancelledByTask,
    Claim,
    DueRecord,
    Failed,
    FullPulse,
    Granted,
    HandedBack,
    Inbox,
    Progress,
    Pulse,
    QueueOffer,
    Report,
    Snoozed,
    Succeeded,
    Tick,
)
from minutebook.domain.rules import RULES, SETTINGS_DIGEST
from minutebook.log.apply import move_cursor
from minutebook.log.draft import Draft
from minutebook.log.port import RawRecord
from minutebook.log.reader import FrameReader
from minutebook.schedule import TZDATA_VERSION
from minutebook.store.memory import MemoryRows
from minutebook.wire import codec, topics
from minutebook.wire.frames import Frame, InputPosition, encode_frame
from streams.cycle import Cycle
from streams.process import Burst
from streams.sessions import Sessions

T0 = 1_750_000_000_000
TASK = "t"


class Inputs:
    """An input topic whose records are put there by hand; as much of `Feed` as a cycle sees."""

    def __init__(self) -> None:
        self.waiting: deque[RawRecord] = deque()
        self._offsets = count()

    def add(self, value: bytes, stamp: int, key: bytes | None = None) -> None:
        self.waiting.append(RawRecord(next(self._offsets), stamp, key, value))

    def take(self) -> RawRecord:
        return self.waiting.popleft()

    def put_back(self, records: list[RawRecord]) -> None:
        self.waiting.extendleft(reversed(records))

    def has_room(self) -> bool:
        return True

    def oldest_stamp(self) -> int | None:
        return self.waiting[0].stamp if self.waiting else None


class Desk:
    """An owner's desk: commands and reports come in, `cycle` makes a frame of what is decided."""

    def __init__(self, partition: int = 0, partitions: int = 1) -> None:
        self.now = T0
        self.partition = partition
        self.partitions = partitions
        self.granted: list[ToSession] = []
        self.rows = MemoryRows(FAMILIES)
        self.book = Book(self.rows)
        self.reader = FrameReader()
        self.inputs = {topic: Inputs() for topic in topics.INPUTS}
        self.consumed = dict.fromkeys(topics.INPUTS, -1)
        """Last offset of each input topic that a cycle has decided on."""
        self.tzdata = TZDATA_VERSION
        self.burst = Burst()
        self.records: list[RawRecord] = []
        """The log."""
        self.replies: list[Inbox] = []
        """What the last cycle answered to reports."""
        draft = Draft(self.book, 0, self.now)
        draft.add(facts.LogOpened("log-1", partitions, partition, 1_000, 1))
        draft.add(facts.OwnershipTaken("o", 1, 0, 0))
        self.keep(draft)
        self.open()

    def open(self) -> None:
        """A cycle's memory made anew from what is stored, as after a restart."""
        self.book = Book(self.rows)
        self.sessions = Sessions(self.book)
        self.core = Cycle(
            self.book,
            self.inputs,  # type: ignore[arg-type]  # as much of a feed as a cycle sees
            self.sessions,
            self.partition,
            self.partitions,
            "o",
            lambda: self.now / 1000,
            self.burst,
        )
        self.core.can_grant = True

    # -- what comes in

    def submit(
        self, *jobs: str, tenant: str = "acme", after_ms: int = 0, again: str = "", **fields: object
    ) -> None:
        """Jobs with these ids, due `after_ms` from now unless a field says otherwise; `again` makes it another command."""
        is_recurring = "cron" in fields or "every_ms" in fields
        when = {} if is_recurring else {"run_at": self.now + after_ms}
        for job_id in jobs:
            command = SubmitJob(
                tenant=tenant,
                job_id=job_id,
                command_id=f"submit-{job_id}{again}",
                issued_at=self.now,
                **({"task": TASK, "payload": b"1"} | when | fields),  # type: ignore[arg-type]  # fields of the command
            )
            self.inputs[topics.COMMANDS].add(codec.encode(command), self.now)

    def cancel(self, job_id: str, tenant: str = "acme") -> None:
        command = CancelJob(tenant=tenant, job_id=job_id, command_id=f"cancel-{job_id}", issued_at=self.now)
        self.inputs[topics.COMMANDS].add(codec.encode(command), self.now)

    def declare(self, queue: str, *, is_open: bool) -> None:
        """A queue, or a change of it."""
        command = DeclareQueue(
            name=queue, command_id=f"declare-{queue}-{is_open}", issued_at=self.now, is_open=is_open
        )
        self.inputs[topics.COMMANDS].add(codec.encode(command), self.now)

    def report(self, report: Report) -> None:
        self.inputs[topics.REPORTS].add(codec.encode(report), self.now)

    def tick(self) -> None:
        """The owner's own mark, read as soon as it is written."""
        reports = self.core.reports
        reports.tick_number += 1
        reports.tick_sent_at = reports.tick_acknowledged_at = self.now
        self.inputs[topics.REPORTS].add(codec.encode(Tick("o", reports.tick_number)), self.now)

    def command(self, command: Command) -> None:
        """Any command."""
        self.inputs[topics.COMMANDS].add(codec.encode(command), self.now)

    # -- frames

    def cycle(self, after_ms: int = 0) -> list[Event]:
        """One cycle, `after_ms` later; what its frame says."""
        self.now += after_ms
        draft, taken = self.core.decide(self.reader.position + 1, self.now)
        self.consumed |= {topic: records[-1].offset for topic, records in taken.inputs.items()}
        if draft.events:
            self.keep(draft, self.core)
        else:
            self.sessions.plan_over()
        self.last = draft
        self.granted = self._grants()
        for output in self.granted:
            self.sessions.overruns.granted(output, self.now)
        self.replies = self.core.replies(self.now)
        return draft.events

    def add(self, *events: Event) -> None:
        """A frame of exactly these events."""
        draft = Draft(self.book, self.reader.position + 1, self.now)
        for event in events:
            draft.add(event)
        self.keep(draft, self.core)

    def void(self, after_ms: int = 0) -> list[Event]:
        """One cycle whose frame turns out void; what it said."""
        self.now += after_ms
        draft, taken = self.core.decide(self.reader.position + 1, self.now)
        events = list(draft.events)
        self.core.restore(taken)
        return events

    def publish(self, queue: str, most: int = 1_000) -> list[DueRecord]:
        """Due records that go out now; the broker has them at once."""
        hints = self.core.open_queues.take(queue, self.now, most)
        for hint in hints:
            self.core.open_queues.sent(queue, hint.key, self.now)
        return [hint.record for hint in hints]

    def grants(self) -> list[ToSession]:
        """Inbox records of the last frame."""
        return self.granted

    def _grants(self) -> list[ToSession]:
        found = outputs(self.book, self.last.placed, self.partition, self.partitions, self.last.now)
        told = self.core.telling.with_counts(found, self.now)
        return [output for output in told if isinstance(output, ToSession)]

    def keep(self, draft: Draft, core: Cycle | None = None) -> None:
        """The frame of a draft is in the log; `core` is the cycle that made it."""
        frame = self.frame(draft)
        record = RawRecord(draft.offset, draft.now, None, encode_frame(frame))
        self.records.append(record)
        assert self.reader.own(record, draft.now)
        move_cursor(self.book, self.reader, frame)
        if core is not None:
            core.follow(draft)
        self.book.commit()

    def lay(self, value: bytes) -> None:
        """A record that is void lies at the end of the log."""
        record = RawRecord(self.reader.position + 1, self.now, None, value)
        self.records.append(record)
        self.reader.take(record)
        move_cursor(self.book, self.reader, None)
        self.book.commit()

    def frame(self, draft: Draft) -> Frame:
        """The frame of a draft, as an owner heads it."""
        return Frame(
            offset=draft.offset,
            head=self.reader.head,
            owner="o",
            epoch=self.book.cursor.epoch,
            now=draft.now,
            rules=RULES,
            tzdata=self.tzdata,
            settings=SETTINGS_DIGEST,
            inputs=[InputPosition(topic, topic, offset) for topic, offset in self.consumed.items()],
            slices=draft.slices,
            outputs_sent_through=-1,
            events=draft.events,
        )


class Hand:
    """A worker's session, its reports written by hand."""

    def __init__(self, desk: Desk, name: str = "w.0", lease_ms: int = 10_000) -> None:
        self.name = name
        self._lease_ms = lease_ms
        self.last_token = -1
        self._desk = desk
        self._sequence = 0

    def pulse(
        self,
        offer: int,
        *,
        held: Sequence[int] | None = None,
        succeeded: Succeeded | None = None,
        handed_back: Sequence[tuple[str, int]] = (),
        failed: Sequence[Failed] = (),
        claims: Sequence[Claim] = (),
        queues: Sequence[str] = ("default",),
        is_leaving: bool = False,
    ) -> None:
        """Offer slots; `held` makes it a full pulse, `succeeded` and `failed` bring results, `handed_back` grants."""
        self._sequence += 1
        full = None
        if held is not None:
            offers = list(map(QueueOffer, queues))
            full = FullPulse(self.name, "1", [TASK], offers, self._lease_ms, 3_000, list(held))
        pulse = Pulse(offer, self.last_token, is_leaving)
        names, tokens = [name for name, _ in handed_back], [token for _, token in handed_back]
        back = HandedBack(["acme"], [0] * len(names), names, tokens) if names else None
        self._desk.report(
            Report(self.name, self._sequence, pulse, full, succeeded, list(failed), back, list(claims))
        )

    def say(
        self,
        *,
        failed: Sequence[Failed] = (),
        snoozed: Sequence[Snoozed] = (),
        cancelled: Sequence[CancelledByTask] = (),
        progress: Sequence[Progress] = (),
        succeeded: Succeeded | None = None,
        handed_back: Sequence[tuple[str, int]] = (),
    ) -> None:
        """A report with these parts, and an offer of nothing."""
        self.pulse(0, succeeded=succeeded, handed_back=handed_back)
        record = self._desk.inputs[topics.REPORTS].waiting.pop()
        report = codec.decode(record.value)
        assert isinstance(report, Report)
        told = msgspec.structs.replace(
            report,
            failed=list(failed),
            snoozed=list(snoozed),
            cancelled=list(cancelled),
            progress=list(progress),
        )
        self._desk.inputs[topics.REPORTS].waiting.append(record._replace(value=codec.encode(told)))

    def take(self) -> list[tuple[str, int]]:
        """(execution, token) of each grant to it in the last frame; it has seen them now."""
        found: list[tuple[str, int]] = []
        for output in self._desk.grants():
            granted = output.record.granted
            if output.session == self.name and granted is not None:
                base = output.record.frame << 16
                found += [
                    (name, base + row) for name, row in zip(granted.executions, granted.rows, strict=True)
                ]
        self.last_token = max((token for _, token in found), default=self.last_token)
        return found


def results(grants: Sequence[tuple[str, int]], tenant: str = "acme") -> Succeeded:
    """Good ends of these grants, all of one tenant."""
    names, tokens = [name for name, _ in grants], [token for _, token in grants]
    zeros = [0] * len(grants)
    return Succeeded([tenant], zeros, names, tokens, zeros, zeros)


def rows(events: Sequence[Event], kind: type[Event]) -> list[str]:
    """Executions that events of that kind name."""
    return [name for event in events if isinstance(event, kind) for name in event.executions]  # type: ignore[union-attr]


__all__ = ["T0", "Desk", "Granted", "Hand", "Inputs", "results", "rows"]
