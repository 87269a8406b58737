"""Which instants a job owes where its calendar changes in the frame that made, edited or resumed it."""

from __future__ import annotations

import pytest

from minutebook.domain import keys
from minutebook.domain.calendar_events import CalendarCopied
from minutebook.domain.commands import Command
from minutebook.domain.decide import decide
from minutebook.domain.timing import Timing
from minutebook.history.completeness import Completeness
from minutebook.history.ledger import Missing, Range
from replay.frames import frames_of
from tests.simulation.copies import CopiedLog
from tests.simulation.log_maker import T0, LogMaker, edit, pause, resume, submit

HOUR_MS = 3_600_000
TODAY = T0 // keys.DAY_MS
CLOSED = Timing(exclude=["a"])
HALF_PAST = "30 * * * *"


@pytest.fixture
def maker() -> LogMaker:
    """An owner that knows the calendar `a`, without effect on the next days."""
    made = LogMaker()
    made.open()
    made.add(changed(1, TODAY - 9))
    return made


def changed(version: int, day: int) -> CalendarCopied:
    """The calendar holds that day alone."""
    return CalendarCopied("acme", "a", version, [day], [day], is_deleted=False)


def decide_late(maker: LogMaker, *steps: Command | CalendarCopied) -> None:
    """One frame, five hours late: commands are stamped an hour after the beginning. Then what is due is decided."""
    maker.clock.advance(5 * HOUR_MS)
    with maker.frame() as draft:
        for step in steps:
            events = [step] if isinstance(step, CalendarCopied) else decide(maker.book, step, T0 + HOUR_MS)
            for event in events:
                draft.add(event)
    maker.due()


def missing(maker: LogMaker) -> list[Missing]:
    found = Completeness(Range(0, 1 << 62))
    for frame in frames_of(CopiedLog(maker.records), 0):
        found.take(frame)
    found.finish()
    ((_, _, ledger),) = found.jobs_of(None)
    return ledger.missing


def test_a_calendar_changed_in_the_frame_that_makes_its_job_counts_for_all_that_it_owes(
    maker: LogMaker,
) -> None:
    decide_late(maker, submit("j", cron=HALF_PAST, timing=CLOSED), changed(2, TODAY))
    assert missing(maker) == []


def test_a_calendar_changed_in_the_frame_that_edits_its_job_counts_for_all_that_it_owes(
    maker: LogMaker,
) -> None:
    maker.command(submit("j", cron="0 * * * *", timing=CLOSED))
    decide_late(maker, edit("j", cron=HALF_PAST, timing=CLOSED), changed(2, TODAY))
    assert missing(maker) == []


def test_a_calendar_changed_in_the_frame_that_resumes_its_job_counts_for_all_that_it_owes(
    maker: LogMaker,
) -> None:
    maker.command(submit("j", cron=HALF_PAST, timing=CLOSED), pause("j"))
    decide_late(maker, resume("j", is_caught_up=True), changed(2, TODAY))
    assert missing(maker) == []


@pytest.mark.parametrize("before", ["0 * * * *", HALF_PAST])
def test_a_change_before_an_edit_does_not_say_from_when_one_after_it_counts(
    before: str, maker: LogMaker
) -> None:
    maker.command(submit("j", cron=before, timing=CLOSED))
    edited = edit("j", cron=HALF_PAST, timing=CLOSED, payload=b"2")
    decide_late(maker, changed(2, TODAY - 8), edited, changed(3, TODAY))
    assert missing(maker) == []


def test_a_change_before_a_pause_and_its_end_does_not_say_it_either(maker: LogMaker) -> None:
    maker.command(submit("j", cron=HALF_PAST, timing=CLOSED))
    decide_late(maker, changed(2, TODAY - 8), pause("j"), resume("j", is_caught_up=True), changed(3, TODAY))
    assert missing(maker) == []


def test_a_change_after_what_was_due_leaves_it_owed(maker: LogMaker) -> None:
    """Else nothing would be asked for above."""
    maker.command(submit("j", cron=HALF_PAST, timing=CLOSED))
    maker.clock.advance(5 * HOUR_MS)
    maker.add(changed(2, TODAY))
    assert len(missing(maker)) == 5
