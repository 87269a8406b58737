"""What comes due: rows of the time index, read a little ahead of their time, held for a grant, queued if nobody takes.

Every row at or before `now` is here, in the window of the time index, or on record.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Final

import structlog

from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.due import Due, due_of, is_still_so, queued_event
from minutebook.log.draft import Draft
from minutebook.wire.frames import Slice
from streams.due_set import DueSet
from streams.taken import Redo, Taken
from streams.window import Window

DUE_MS: Final = 5
DUE_ROWS: Final = 1_000
"""A busy machine stretches the clock: so many rows are read in a cycle all the same."""
DUE_ROWS_MAX: Final = 4_000
DUE_PORTION: Final = 250
AHEAD_MS: Final = 60_000
AHEAD_ROWS: Final = 200
AHEAD_MAX: Final = 20_000

log = structlog.get_logger()


class DueRows:
    """The time index of one partition, as far as it is near. `held` is what is due and not on record."""

    def __init__(
        self, book: Book, partition: int, monotonic: Callable[[], float], open_queues: Set[str] = frozenset()
    ) -> None:
        self._book = book
        self._open_queues = open_queues
        """Queues that nobody offers for: what comes due there is queued at once."""
        self._partition = partition
        self._monotonic = monotonic
        self._index = Window(book.rows, "index", keys.index_bound(book.cursor.index_low), None)
        self._ahead: dict[bytes, Due] = {}
        """What rows stand for that are not due yet, until something is written about them."""
        self.held = DueSet()
        self.poisoned: set[tuple[str, int]] = set()
        self._stuck: bytes | None = None
        """The first row that could not be decided: it is passed over, and tried again after a restart."""

    def next_due_at(self) -> int | None:
        """Instant of the next row of the time index; None if there is none."""
        head = self._index.head()
        return None if head is None else keys.index_parts(head)[0]

    def ahead(self) -> int:
        """Rows read ahead of their time."""
        return len(self._ahead)

    def read(self, draft: Draft, taken: Taken) -> None:
        """Rows of the time index that are due go into the due set; what cannot wait there is recorded at once."""
        bound = keys.index_bound(draft.now + 1)
        until = self._monotonic() + DUE_MS / 1000
        rows, read = list[Due](), 0
        while (left := DUE_ROWS_MAX - max(read, len(rows))) > 0 and (
            portion := self._index.take(bound, min(left, DUE_PORTION))
        ):
            read += len(portion)
            self._take_in(portion, draft, taken, rows)
            if draft.is_full() or (max(read, len(rows)) >= DUE_ROWS and self._monotonic() > until):
                break
        _queue(draft, rows)
        if taken.due:
            draft.slices.append(Slice("", -1, self._through(draft), len(draft.events)))

    def _take_in(self, portion: list[bytes], draft: Draft, taken: Taken, rows: list[Due]) -> None:
        """Rows of the time index into the due set, or into `rows` where they cannot wait there; beyond `DUE_ROWS_MAX` of
        those, or a full frame, the rest of the portion waits for another cycle.
        """
        now, ahead, hold = draft.now, {} if self.poisoned else self._ahead, self.held.put
        rest = iter(portion)
        try:
            for key in rest:
                due = ahead.pop(key, None)
                if due is not None and is_still_so(due, now) and due.queue not in self._open_queues:
                    hold(key, due, now)
                    continue
                taken.due.append(key)
                found = self._one_due(draft, key, rows)
                if len(found) == 1 and self._may_wait(found[0]):
                    hold(taken.due.pop(), found[0], now)
                else:
                    rows += found
                if draft.is_full() or len(rows) >= DUE_ROWS_MAX:
                    break
        finally:
            for key in rest:
                self._index.put(key)

    def read_ahead(self, now: int) -> bool:
        """Find out, in an idle moment, what the next minute's rows stand for. False if there is no more to do."""
        self._index.load_ahead()
        if len(self._ahead) >= AHEAD_MAX:
            return False
        coming = self._index.coming(keys.index_bound(now + AHEAD_MS), AHEAD_ROWS)
        for key in coming:
            if key in self._ahead:
                continue
            try:
                found, events = due_of(self._book, key, keys.index_parts(key)[0])
            except Exception:
                log.warning("due_row_not_read_ahead", partition=self._partition)
                continue
            if len(found) == 1 and not events:
                self._ahead[key] = found[0]
        return bool(coming)

    def _may_wait(self, due: Due) -> bool:
        """Whether it may wait for a grant off the record."""
        return not due.is_recorded_at_once and due.queue not in self._open_queues

    def _one_due(self, draft: Draft, key: bytes, rows: list[Due]) -> list[Due]:
        """What the row at `key` stands for. What follows on record is decided once `rows` are."""
        if self.poisoned and _place(key) in self.poisoned:
            self._stuck = min(self._stuck or key, key)
            return []
        try:
            found, events = due_of(self._book, key, draft.now)
            if events and rows:
                _queue(draft, rows)
                found, events = due_of(self._book, key, draft.now)
            for event in events:
                draft.add(event)
        except Exception as error:
            log.exception("due_row_not_decided", partition=self._partition, key=key.hex())
            raise Redo(*_place(key)) from error
        return found

    def queue_overdue(self, draft: Draft, taken: Taken) -> None:
        """Record as queued what nobody takes soon enough."""
        overdue = list(self.held.take_overdue(draft.now, min(DUE_ROWS_MAX, draft.room())))
        gone = self.changed()
        rows = [held.due for held in overdue if held.key not in gone]
        taken.due.extend([held.key for held in overdue])
        events = len(draft.events)
        if rows:
            draft.add(queued_event(rows))
        if taken.due:
            draft.slices.append(Slice("", -1, self._through(draft), len(draft.events) - events))

    def _through(self, draft: Draft) -> bytes:
        """A key of the time index before which nothing is left that is due and not on record."""
        now = keys.index_bound(draft.now)
        first = min(self._stuck or now, self.held.first_key() or now, self._index.head() or now, now)
        return keys.index_bound(keys.index_parts(first)[0])

    def put_back(self, taken: list[bytes]) -> None:
        """Rows recorded in a draft that is forgotten; what is held is read again, too."""
        for key in (*taken, *self.held.drain()):
            self._index.put(key)

    def follow(self) -> None:
        """Rows written and deleted by the frame about to be committed."""
        pending = self._book.index.pending
        for key in pending.keys() & self._ahead.keys():
            del self._ahead[key]
        self.held.remove(pending.keys())
        self._index.remove([key for key, value in pending.items() if value is None])
        for key, value in pending.items():
            if value is not None:
                self._index.put(key)

    def changed(self) -> Set[bytes]:
        """Rows that a decision of this very cycle has deleted, or put another version of its job under."""
        return self._book.index.pending.keys()


def _queue(draft: Draft, rows: list[Due]) -> None:
    """Record `rows` as queued, and forget them."""
    if rows:
        draft.add(queued_event(rows))
        rows.clear()


def _place(key: bytes) -> tuple[str, int]:
    return "", int.from_bytes(key, "big")
