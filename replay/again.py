"""One frame decided again: its events are asked for one after the other, in the order of the owner's cycle.

What follows from commands, mail, results and time alone must come out equal. What rests on the memory of the owner that
made the frame, such as which session got what, is checked as far as it must not be, and counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from minutebook.domain import events as facts
from minutebook.domain.book import Book
from minutebook.domain.events import Event
from minutebook.domain.records import Report, Tick
from minutebook.domain.results import REFUSED, decide_report
from minutebook.domain.senseless import NAME_CHARS_MAX, senseless
from minutebook.errors import DecodeError
from minutebook.log.draft import Draft
from minutebook.log.inputs import decide_input, read_input
from minutebook.log.port import RawRecord
from minutebook.wire import topics
from minutebook.wire.frames import Frame
from replay.differences import difference

MEMORY: Final = "rests on what only its owner's memory held"
OFFERS: Final = "rests on reports that are no longer kept"


class DifferentError(Exception):
    """The frame says something else than is decided again. `what`: in plain words."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class Again:
    """A frame on its way: `at` of its events have come out. Nothing is written, `book` is to be discarded afterwards."""

    def __init__(self, book: Book, frame: Frame, partition: int, ended: dict[int, str]) -> None:
        self.book = book
        self.frame = frame
        self.partition = partition
        self.draft = Draft(book, frame.offset, frame.now)
        self.at = 0
        self.equal = 0
        """Events that came out equal."""
        self.allowed = 0
        """Events that need not have been, but may be."""
        self.unchecked: Counter[str] = Counter()
        self._ended = ended

    @property
    def now(self) -> int:
        """Its time."""
        return self.frame.now

    def next(self) -> Event | None:
        """The event that must come out next; None behind the last."""
        return self.frame.events[self.at] if self.at < len(self.frame.events) else None

    # -- what must be equal

    def same(self, events: Iterable[Event]) -> None:
        """These come next, each folded before the next is asked for. Raises DifferentError."""
        for event in events:
            self.equal += self._place(event)

    def said(self, count: int, reason: str) -> None:
        """Take the next `count` events as the frame says them, for they cannot be decided again."""
        end = min(self.at + count, len(self.frame.events))
        while self.at < end:
            self.unchecked[reason] += self._place(self.frame.events[self.at])

    def may(self, events: Iterable[Event], unchecked: str = "") -> None:
        """These come next, of which the frame alone says that something brought them about: it may have, or `unchecked` says
        why that cannot be told. Raises DifferentError."""
        for event in events:
            count = self._place(event)
            if unchecked:
                self.unchecked[unchecked] += count
            else:
                self.allowed += count

    def allow(self) -> None:
        """Take the next event as the frame says it: it was found to be allowed."""
        self.allowed += self._place(self.frame.events[self.at])

    def _place(self, event: Event) -> int:
        """Put an event into the draft, with what follows from it; how many events of the frame that is."""
        start = len(self.draft.events)
        said = self.next()
        if said != event:
            raise DifferentError(difference(said, event))
        self.draft.add(event)
        placed = self.draft.events[start:]
        for follower in placed[1:]:
            said = self.frame.events[self.at + 1] if self.at + 1 < len(self.frame.events) else None
            if said != follower:
                raise DifferentError(difference(said, follower))
            self.at += 1
        self.at += 1
        return len(placed)

    def silent(self, topic: str, record: RawRecord) -> None:
        """Nothing must come of an input that was consumed before this cycle and is on no record. Raises DifferentError."""
        events = self._reported(record) if topic == topics.REPORTS else self.decided(topic, record)
        event = next(iter(events), None)
        if event is not None:
            raise DifferentError(f"{difference(None, event)}, of {topic} offset {record.offset}")

    def _reported(self, record: RawRecord) -> Iterator[Event]:
        """What a report decides for certain, nothing of it folded."""
        try:
            report = read_input(topics.REPORTS, record.value)
        except DecodeError as error:
            yield facts.RecordRejected(topics.REPORTS, self.partition, record.offset, str(error))
            return
        if isinstance(report, Report) and not senseless(report, self.book.cursor.position):
            for step in decide_report(self.book, report, self.now, self._ended):
                yield from (event for event in step if not _is_stale(event))

    # -- inputs

    def news(self, topic: str, record: RawRecord) -> None:
        """What a command or a piece of mail decides. Raises DifferentError."""
        if self._is_refused(topic, record):
            self.said(1, "an input on which the decision failed then")
        else:
            self.same(self.decided(topic, record))

    def decided(self, topic: str, record: RawRecord) -> Iterable[Event]:
        """What it decides on the state as it is now."""
        try:
            decoded = read_input(topic, record.value)
        except DecodeError as error:
            return [facts.RecordRejected(topic, self.partition, record.offset, str(error))]
        cursor = self.book.cursor
        return decide_input(self.book, self.partition, cursor.partitions, topic, record, decoded)

    def report(self, record: RawRecord) -> Report | None:
        """The results of a report, which is returned if it was taken. Raises DifferentError."""
        if self._is_refused(topics.REPORTS, record):
            self.said(1, "an input on which the decision failed then")
            return None
        try:
            report = read_input(topics.REPORTS, record.value)
        except DecodeError as error:
            self.same([facts.RecordRejected(topics.REPORTS, self.partition, record.offset, str(error))])
            return None
        if not isinstance(report, Report):
            if not isinstance(report, Tick):
                what = f"a {type(report).__name__} does not belong on {topics.REPORTS}"
                self.same([facts.RecordRejected(topics.REPORTS, self.partition, record.offset, what)])
            return None
        if reason := senseless(report, self.book.cursor.position):
            refused = (report.session[:NAME_CHARS_MAX], "report", "", "", -1, reason)
            self.same([facts.ReportRefused(*refused)])
            return None
        for step in decide_report(self.book, report, self.now, self._ended):
            self._results(step)
        return report

    def _results(self, step: Sequence[Event]) -> None:
        """One step of a report. Whether an old token is refused on record rests on what its owner remembered."""
        for event in step:
            said = self.next()
            if _is_stale(event) and said != event:
                continue
            if _is_stale(said) and said != event:
                self.said(1, MEMORY)
            self.same([event])
            note_ended(self._ended, event)

    def _is_refused(self, topic: str, record: RawRecord) -> bool:
        said = self.next()
        return isinstance(said, facts.InputRefused) and (said.topic, said.offset) == (topic, record.offset)


def _is_stale(event: Event | None) -> bool:
    return isinstance(event, facts.ReportRefused) and event.reason.startswith(REFUSED)


def note_ended(ended: dict[int, str], event: Event) -> None:
    """Remember, as an owner does, how tokens ended."""
    match event:
        case facts.AttemptsSucceeded():
            ended.update(dict.fromkeys(event.tokens, "succeeded"))
        case facts.AttemptFailed() | facts.AttemptCancelled():
            ended[event.token] = "failed"
        case facts.AttemptSnoozed():
            ended[event.token] = "snoozed"
        case facts.GrantsReturned():
            ended.update(dict.fromkeys(event.tokens, event.reason))
        case _:
            return
