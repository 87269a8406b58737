"""Did owners decide by their rules? Each frame's decisions made again, on the state before it, from the very inputs and at
the time that it names.

What cannot be made again is counted with the reason: inputs that are no longer kept, other rules or zone data, the memory of
an owner that is gone. It reads topics and files, and writes nothing.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from kafka.errors import KafkaError

from minutebook.domain import book as state
from minutebook.domain import events as facts
from minutebook.domain.book import Book
from minutebook.domain.events import Event
from minutebook.domain.records import Report
from minutebook.domain.rescheduling import zone_data_changed
from minutebook.domain.rules import RULES, SETTINGS_DIGEST
from minutebook.errors import BrokenFrameError, LogError, LogGapError, SettingsError
from minutebook.log.apply import fold_events, move_cursor
from minutebook.log.inputs import days_over
from minutebook.log.port import RawRecord
from minutebook.schedule import TZDATA_VERSION
from minutebook.wire import topics
from minutebook.wire.frames import Frame, Slice, placed
from replay.again import MEMORY, Again, DifferentError, note_ended
from replay.behind_again import BehindAgain
from replay.decided import Decided, PartitionDecided
from replay.differences import difference, words
from replay.due_again import DueAgain
from replay.frames import AuditReader, records_taken
from replay.hearing import Hearing
from replay.inputs import Inputs
from replay.parallel import Stopped, never, spread
from replay.reading import TO_THE_END, Advance, Log, Until, unheard
from replay.refold import MakeRows, on_disk
from replay.report import Finding
from replay.taken_again import HANDED_BACK, NOT_HELD, WITHDRAWN
from replay.taken_inputs import TakenInputs

NOT_WHOLE: Final = "its log does not begin with the first record here"
TAKE_OVER: Final = "what only the process that took over knew"
ENDED_KEPT_MAX: Final = 16_384
DIFFERENT_MAX: Final = 1_000
"""Differences of a partition after which no more are looked for."""


def decide_again(
    log: Log,
    inputs: Inputs,
    partitions: list[int],
    until: Until = TO_THE_END,
    advance: Advance = unheard,
    make_rows: MakeRows = on_disk,
    *,
    processes: int = 1,
    is_stopped: Stopped = never,
) -> Decided:
    """Make every decision of `partitions` again, by several processes. Where a record is missing or cannot be folded, that is
    a finding, and nothing behind it is decided again. After a stop the report says how far each partition came.

    Raises KafkaError, SettingsError for inputs in damaged files, ProcessDiedError.
    """
    done = spread(partitions, _OfOne(log, inputs, until, make_rows), processes, advance, is_stopped)
    parts = [
        done.get(one) or _Part(PartitionDecided(partition=one, is_interrupted=True), []) for one in partitions
    ]
    findings = [finding for part in parts for finding in part.findings]
    reports = [part.report for part in parts]
    return Decided(ok=not findings, inputs=inputs.absent, partitions=reports, findings=findings)


class _Part(NamedTuple):
    """What came of one partition."""

    report: PartitionDecided
    findings: list[Finding]


class _OfOne(NamedTuple):
    """The work on one partition, as `spread` hands it to a process."""

    log: Log
    inputs: Inputs
    until: Until
    make_rows: MakeRows

    def __call__(self, partition: int, advance: Advance, is_stopped: Stopped) -> _Part:
        with tempfile.TemporaryDirectory(prefix="minutebook-decide-") as folder:
            rows = self.make_rows(Path(folder) / "state", state.FAMILIES)
            try:
                deciding = _Deciding(Book(rows), partition, self.inputs)
                deciding.run(self.log, self.until, advance, is_stopped)
                return _Part(deciding.report, deciding.findings)
            finally:
                rows.close()


class _Deciding:
    """One partition on its way."""

    def __init__(self, book: Book, partition: int, inputs: Inputs) -> None:
        self.report = PartitionDecided(partition=partition)
        self.findings: list[Finding] = []
        self._book = book
        self._partition = partition
        self._hearing = Hearing(book)
        self._inputs = {
            topic: TakenInputs(
                inputs, topic, partition, self._hearing.hear if topic == topics.REPORTS else None
            )
            for topic in topics.INPUTS
        }
        self._ended: dict[int, str] = {}
        self._owned_at = 0

    def run(self, log: Log, until: Until, advance: Advance, is_stopped: Stopped) -> None:
        """Every record of the partition."""
        start, end = log.bounds(self._partition)
        if start:
            self.report.unchecked[NOT_WHOLE] = end - start
            return
        reader = AuditReader()
        try:
            for frame in records_taken(log, self._partition, reader, until, advance):
                self.report.position, self.report.void_at_end = reader.position, reader.void_at_end
                if not self._take(reader, frame) or len(self.findings) >= DIFFERENT_MAX:
                    return
                if is_stopped():
                    self.report.is_interrupted = True
                    return
        except LogError as error:
            at = reader.position + 1 if isinstance(error, LogGapError) else max(0, reader.position)
            what = f"the log cannot be read on: {error}. See `python -m replay verify`"
            self.findings.append(Finding(self._partition, at, at, at, what))

    def _take(self, reader: AuditReader, frame: Frame | None) -> bool:
        """The record that `reader` just took. False where nothing behind it can be decided again."""
        if frame is not None:
            self._frame(frame)
            try:
                fold_events(self._book, frame)
            except BrokenFrameError as error:
                self._find(frame, len(frame.events), f"nothing behind it can be decided again: {error}")
                return False
        before = self._book.cursor.index_low
        move_cursor(self._book, reader, frame)
        self._book.commit()
        if frame is not None:
            self._follow(frame, before)
        return True

    # -- one frame

    def _frame(self, frame: Frame) -> None:
        """Decide it again; the state is as before afterwards."""
        self.report.frames += 1
        foreign = _foreign(frame)
        again = Again(self._book, frame, self._partition, self._ended)
        try:
            if foreign:
                self._hear_all(frame)
                again.said(len(frame.events), foreign)
            elif any(isinstance(event, facts.OwnershipTaken) for event in frame.events):
                self._take_over(again)
            else:
                self._cycle(again)
        except DifferentError as error:
            self._find(frame, again.at, error.what)
        except (KafkaError, SettingsError):  # an input cannot be read
            raise
        except Exception as error:  # a frame that was changed can make a decision fail in any way
            self._find(frame, again.at, f"it cannot be decided again: {words(error)}")
        finally:
            self._book.discard()
        self.report.equal += again.equal
        self.report.allowed += again.allowed
        for reason, count in again.unchecked.items():
            self.report.unchecked[reason] = self.report.unchecked.get(reason, 0) + count

    def _follow(self, frame: Frame, index_low: int) -> None:
        """The frame is folded."""
        self._hear_all(frame)
        self._hearing.follow(placed(frame))
        if len(self._ended) > ENDED_KEPT_MAX:
            self._ended.clear()
        for event in frame.events:
            if isinstance(event, facts.OwnershipTaken):
                self._owned_at = frame.now
                self._ended.clear()
            elif _foreign(frame):
                note_ended(self._ended, event)
        through = next((part.key for part in reversed(frame.slices) if part.key), b"")
        if through and not _foreign(frame):
            try:
                again = Again(self._book, frame, self._partition, self._ended)
                DueAgain(again, self._owned_at).left_out(index_low, through)
            except DifferentError as error:
                self._find(frame, len(frame.events), error.what)

    def _find(self, frame: Frame, index: int, what: str) -> None:
        text = f"event {index} of the frame: {what}"
        self.findings.append(Finding(self._partition, frame.offset, frame.offset, frame.offset, text))

    def _take_over(self, again: Again) -> None:
        """What the first frame of an owner says: it is the next one, and computes anew what other zone data moves."""
        reports = self._book.cursor.inputs.get(topics.REPORTS, ("", -1))[1]
        for event in list(again.frame.events):
            match event:
                case facts.LogOpened():
                    again.said(1, TAKE_OVER)
                case facts.OwnershipTaken():
                    taken = (event.owner, self._book.cursor.epoch + 1, event.reports_from, reports + 1)
                    again.same([facts.OwnershipTaken(*taken)])
                case _:
                    break
        again.same(zone_data_changed(self._book, again.frame.tzdata))
        if (said := again.next()) is not None:
            raise DifferentError(difference(said, None))

    def _cycle(self, again: Again) -> None:
        frame = again.frame
        self._silent(again)
        again.same(days_over(self._book, again.now))
        due, inputs = _parts(frame)
        come = DueAgain(again, self._owned_at)
        come.read(due, has_commands=any(part.topic == topics.COMMANDS and part.events for part in inputs))
        behind = BehindAgain(again, come, self._hearing)
        for part in inputs:
            self._input(again, behind, part)
        self._hear_all(frame)
        behind.finish()

    def _silent(self, again: Again) -> None:
        """What was consumed and of which the frame has no slice has decided nothing."""
        _, inputs = _parts(again.frame)
        named = {part.topic for part in inputs}
        for position in again.frame.inputs:
            if position.topic in named:
                continue
            records = self._inputs[position.topic].take(position.topic_id, position.offset)
            for record in records or ():
                again.silent(position.topic, record)

    def _input(self, again: Again, behind: BehindAgain, part: Slice) -> None:
        """One slice of inputs."""
        start = again.at
        topic_id = next((one.topic_id for one in again.frame.inputs if one.topic == part.topic), "")
        records = self._inputs[part.topic].take(topic_id, part.offset)
        if records is None:
            again.said(part.events, self._inputs[part.topic].reason)
            return
        for record in records:
            if part.topic == topics.REPORTS:
                self._report(again, behind, record, start + part.events)
            else:
                again.news(part.topic, record)
        if again.at != start + part.events:
            what = f"{part.topic} through offset {part.offset} decides {again.at - start} events"
            raise DifferentError(f"{what}, the frame counts {part.events}")

    def _report(self, again: Again, behind: BehindAgain, record: RawRecord, end: int) -> None:
        """A report: its results, and what its pulse and its claims bring about."""
        report = again.report(record)
        while report is not None and again.at < end and (said := again.next()) is not None:
            if _is_of_pulse(said, report) and isinstance(said, facts.AttemptsLost | facts.GrantsReturned):
                behind.taken.by_report(said)
            elif _is_of_pulse(said, report):
                again.said(1, MEMORY)
            elif report.claims and isinstance(said, facts.PermitsAsked):
                behind.asked(said)
            elif report.claims and isinstance(said, facts.SessionStarted | facts.ExecutionsGranted):
                behind.granted(said, report)
            else:
                return

    def _hear_all(self, frame: Frame) -> None:
        """Everything that the frame's owner had consumed is taken, and what it had heard ahead of that is heard."""
        for position in frame.inputs:
            self._inputs[position.topic].take(position.topic_id, position.offset)
        ahead = [part.offset for part in frame.slices if part.topic == topics.REPORTS]
        self._inputs[topics.REPORTS].read_ahead(max(ahead, default=-1))


def _foreign(frame: Frame) -> str:
    """Why this code does not decide as the frame's owner did; empty if it does."""
    if frame.rules != RULES:
        return f"decided by rules {frame.rules}, here are rules {RULES}"
    if frame.tzdata != TZDATA_VERSION:
        return f"decided with the zone data {frame.tzdata}, here is {TZDATA_VERSION}"
    return "" if frame.settings == SETTINGS_DIGEST else "decided by other settings"


def _parts(frame: Frame) -> tuple[int | None, list[Slice]]:
    """How many events came first because they were due, if the frame says so, and its slices of inputs.

    A slice of reports behind what was consumed tells only how far pulses were heard. What was due has two slices: a first
    one where something was recorded at once, and one of what was held before.
    """
    due = [part for part in frame.slices if not part.topic]
    consumed = {position.topic: position.offset for position in frame.inputs}
    inputs = [part for part in frame.slices if part.topic and part.offset <= consumed.get(part.topic, -1)]
    return (due[0].events if len(due) > 1 else None), inputs


def _is_of_pulse(said: Event, report: Report) -> bool:
    """Whether an event may come from what a report's pulse says of held tokens, or from the leaving of its session."""
    match said:
        case facts.AttemptsLost():
            return said.cause == NOT_HELD and _are_missing(said, report)
        case facts.GrantsReturned() if said.reason == HANDED_BACK:
            pulse = report.pulse
            is_its = pulse is not None and pulse.is_leaving and said.sessions == [report.session]
            return is_its and pulse is not None and min(said.tokens) > pulse.last_token
        case facts.GrantsReturned():
            return said.reason == WITHDRAWN and _are_missing(said, report)
        case facts.AttemptCancelled():
            return said.cause in (NOT_HELD, WITHDRAWN, HANDED_BACK)
        case _:
            return False


def _are_missing(said: facts.AttemptsLost | facts.GrantsReturned, report: Report) -> bool:
    """Whether a full pulse does not list tokens that its session has seen."""
    full, pulse = report.full, report.pulse
    if full is None or pulse is None or said.sessions != [report.session]:
        return False
    return max(said.tokens) <= pulse.last_token and set(full.held).isdisjoint(said.tokens)
