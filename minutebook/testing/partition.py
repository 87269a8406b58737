"""One partition in memory: the real decide, fold, frames and view, over a log in a list, with one worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Final

from minutebook.clock import ManualClock
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import FAMILIES, Book, digest
from minutebook.domain.commands import Command
from minutebook.domain.decide import decide
from minutebook.domain.due import Due, due_granted_event, due_of, queued_event
from minutebook.domain.events import Event
from minutebook.domain.giving_up import Held
from minutebook.domain.grants import granted_event
from minutebook.domain.outputs import ToSession, outputs
from minutebook.domain.records import Inbox, Report
from minutebook.domain.rescheduling import advance
from minutebook.domain.results import decide_report, lost
from minutebook.domain.view import PartitionView
from minutebook.domain.view_rows import FAMILIES as VIEW_FAMILIES
from minutebook.domain.view_rows import CursorRow
from minutebook.domain.view_rows import digest as view_digest
from minutebook.grant_spans import with_spans
from minutebook.log.apply import move_cursor
from minutebook.log.draft import Draft
from minutebook.log.memory import MemoryEventLog
from minutebook.log.port import RawRecord
from minutebook.log.reader import CLOCK_BOUND_MS, FrameReader
from minutebook.schedule import TZDATA_VERSION
from minutebook.store.memory import MemoryRows
from minutebook.wire.frames import FORMAT_VERSION, Frame, encode_frame

SESSION: Final = "test.0"
_OWNER: Final = "test"


class Partition:
    """Its owner, told what to do step by step; every step is one frame, valid at once. `tasks` are those the worker knows."""

    def __init__(self, clock: ManualClock, tasks: Set[str]) -> None:
        self._clock = clock
        self._tasks = tasks
        self._log = MemoryEventLog(1, clock.now)
        self._rows = MemoryRows(FAMILIES)
        self._book = Book(self._rows)
        self._reader = FrameReader()
        self._passed: set[bytes] = set()
        """Rows of the time index that were due and said nothing: deadlines of what started."""
        self._view_rows = MemoryRows(VIEW_FAMILIES)
        self.view = PartitionView(self._view_rows, 0)
        self._append([facts.LogOpened("test", 1, 0, CLOCK_BOUND_MS, FORMAT_VERSION)])
        self._append([facts.OwnershipTaken(_OWNER, 1, 0, 0)])
        self._append([facts.SessionStarted(SESSION, "test", sorted(tasks), 10_000, 3_000)])

    def command(self, command: Command) -> list[Event]:
        """Decide a command that the broker stamped now; what was said."""
        events = decide(self._book, command, self._clock.now())
        self._append(events)
        self._reschedule()
        return events

    def _reschedule(self) -> None:
        """Next instants that a change of a calendar moves are computed anew at once."""
        while works := list(self._book.reschedulings.scan(b"")):
            for work, reached in works:
                self._append([advance(self._book, work, reached, self._clock.now())])

    def next_at(self) -> int | None:
        """When something comes due next, ms; None if nothing will."""
        head = next((key for key, _ in self._book.index.scan(b"") if key not in self._passed), None)
        return None if head is None else keys.index_parts(head)[0]

    def grant(self) -> list[Inbox]:
        """Everything that is due or queued and has a task that the worker knows goes to it; its inbox records."""
        placed = [*self._grant_queued(), *self._grant_due()]
        now = self._clock.now()
        found = with_spans(self._book, outputs(self._book, placed, 0, 1, now), now)
        return [output.record for output in found if isinstance(output, ToSession)]

    def report(self, report: Report) -> None:
        """The worker's report."""
        for step in decide_report(self._book, report, self._clock.now(), {}):
            self._append(step)

    def lose(self) -> None:
        """The worker is gone and comes back at once: everything that runs is lost."""
        held = [Held(key, row.token, row) for key, row in self._book.running.scan(b"")]
        self._append(lost(self._book, "lease_over", held, self._clock.now()))

    def records(self) -> list[RawRecord]:
        """The log, from its start."""
        return self._log.records(0)

    def digests(self) -> tuple[bytes, bytes]:
        """SHA-256 of the owner's state and of the view."""
        return digest(self._rows), view_digest(self._view_rows, 0)

    # -- what waits

    def _grant_due(self) -> list[tuple[Event, int]]:
        return self._append(self._due())

    def _due(self) -> Iterator[Event]:
        """What is on record of everything that is due; each event is folded before the next is asked for."""
        now = self._clock.now()
        bound = keys.index_bound(now + 1)
        rows: list[Due] = []
        for key in [key for key, _ in self._book.index.scan(b"") if key < bound and key not in self._passed]:
            found, events = due_of(self._book, key, now)
            if events and rows:
                yield from self._come(rows)
                rows = []
                found, events = due_of(self._book, key, now)
            if not found and not events:
                self._passed.add(key)
            yield from events
            rows += found
        yield from self._come(rows)

    def _come(self, rows: list[Due]) -> Iterator[Event]:
        """Granted where the worker knows the task, queued where not."""
        known = [row for row in rows if row.task in self._tasks]
        unknown = [row for row in rows if row.task not in self._tasks]
        if known:
            yield due_granted_event(known, [SESSION] * len(known))
        if unknown:
            yield queued_event(unknown)

    def _grant_queued(self) -> list[tuple[Event, int]]:
        rows = list(self._queued())
        return self._append([granted_event(rows)]) if rows else []

    def _queued(self) -> Iterator[tuple[str, str, int, str]]:
        for key, _ in self._book.queued.scan(b""):
            lane, name = keys.queued_parts(key)
            execution = self._book.execution(keys.execution_row(lane.tenant, name))
            if lane.task in self._tasks and execution is not None:
                yield lane.tenant, name, execution.attempt, SESSION

    # -- frames

    def _append(self, events: Iterable[Event]) -> list[tuple[Event, int]]:
        """A frame of these events, folded into state and view; each event with the token of its first row."""
        now, offset = self._clock.now(), self._reader.position + 1
        draft = Draft(self._book, offset, now)
        for event in events:
            draft.add(event)
        if not draft.events:
            return []
        frame = Frame(
            offset=offset,
            head=self._reader.head,
            owner=_OWNER,
            epoch=self._book.cursor.epoch,
            now=now,
            rules=1,
            tzdata=TZDATA_VERSION,
            settings=b"",
            inputs=[],
            slices=[],
            outputs_sent_through=offset - 1,
            events=draft.events,
        )
        self._reader.own(self._log.put(0, encode_frame(frame)), now)
        move_cursor(self._book, self._reader, frame)
        self._book.commit()
        self.view.fold(draft.events, now, offset)
        self.view.advance(CursorRow(offset, self._reader.head, self._reader.head_before))
        self._view_rows.write(*self.view.drain())
        return draft.placed
