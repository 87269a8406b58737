"""Pause, resume and edit: the exact events that answer each, what is refused and why, and what comes due after them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.commands import RedriveExecution
from minutebook.domain.events import Event
from minutebook.domain.placing import is_to_come
from minutebook.domain.policy import Policy
from minutebook.domain.state import NONE_AT, UNCHANGED, Job
from minutebook.domain.timing import Timing
from minutebook.domain.view_due import due_counts
from tests.simulation.folds import viewed
from tests.simulation.log_maker import (
    SESSION,
    T0,
    LogMaker,
    cancel,
    edit,
    execution_of,
    failure,
    pause,
    resume,
    run_now,
    submit,
    success,
)

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
replace = msgspec.structs.replace


@pytest.fixture
def maker() -> LogMaker:
    made = LogMaker()
    made.open()
    return made


def job_of(maker: LogMaker, job_id: str = "a") -> Job:
    row = keys.job_row("acme", job_id)
    found = maker.book.jobs.get(row) or maker.book.remembered(maker.book.closed, row)
    assert found is not None
    return found


def refused(events: list[Event]) -> tuple[str, str]:
    """(reason, field) of the one refusal."""
    (event,) = events
    assert isinstance(event, facts.CommandRejected), event
    return event.reason, event.field


def answered(events: list[Event]) -> str:
    (event,) = events
    assert isinstance(event, facts.CommandAnswered), event
    return event.reason


def kinds(events: list[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def due_ids(events: list[Event]) -> list[str]:
    columns = facts.ExecutionsQueued | facts.ExecutionsDueGranted
    return [name for event in events if isinstance(event, columns) for name in event.executions]


def placed_at(events: list[Event]) -> list[int]:
    """Instants that are made up for, or held."""
    return [at for event in events if isinstance(event, facts.ExecutionsPlaced) for at in event.scheduled_at]


def pass_minutes(maker: LogMaker, count: int, session: str = "") -> None:
    """Minute after minute, with what comes due."""
    for _ in range(count):
        maker.clock.advance(MINUTE)
        maker.due(session)


def now(maker: LogMaker) -> dict[str, int]:
    return {"issued_at": maker.clock.now()}


def minutely(maker: LogMaker, job_id: str = "a", **more: object) -> int:
    """A job that is due every minute; its first instant."""
    (event,) = maker.command(submit(job_id, cron="* * * * *", **more, **now(maker)))
    assert isinstance(event, facts.JobSubmitted)
    return event.next_at


# -- pause and resume


def test_a_paused_job_has_no_instant_and_says_so(maker: LogMaker) -> None:
    minutely(maker)
    events = maker.command(pause("a", command_id="p", actor="me", reason="broken feed"), stamp=T0 + 5)
    assert events == [facts.JobPaused("acme", "a", "p", "me", "broken feed", T0 + 5, "command")]
    maker.clock.advance(DAY)
    assert maker.due() == []
    assert job_of(maker).status == "paused"


@pytest.mark.parametrize("days", [0, 1, 31])
def test_the_instants_of_a_pause_are_one_skip_with_an_exact_count(maker: LogMaker, days: int) -> None:
    first_at = minutely(maker)
    maker.command(pause("a"))
    maker.clock.advance(days * DAY + 5 * MINUTE)
    stamp = maker.clock.now()
    resumed, skipped = maker.command(resume("a", command_id="r", **now(maker)))
    assert resumed == facts.JobResumed("acme", "a", "r", "", "", stamp, False, first_at)
    following = (stamp // MINUTE + 1) * MINUTE
    last_at = following - MINUTE
    count = (last_at - first_at) // MINUTE + 1
    assert skipped == facts.ExecutionsSkipped("acme", "a", "paused", first_at, last_at, count, following)
    assert maker.due() == []
    maker.clock.advance(MINUTE)
    assert due_ids(maker.due()) == [execution_of("a", following)]


def test_a_resume_with_catch_up_leaves_the_pause_to_the_misfire_policy(maker: LogMaker) -> None:
    minutely(maker)
    maker.command(pause("a"))
    maker.clock.advance(31 * DAY)
    (resumed,) = maker.command(resume("a", is_caught_up=True, **now(maker)))
    assert isinstance(resumed, facts.JobResumed)
    assert resumed.is_caught_up
    events = maker.due()
    (skipped,) = [event for event in events if isinstance(event, facts.ExecutionsSkipped)]
    assert (skipped.reason, skipped.count) == ("misfire", 31 * 24 * 60 - 100)
    assert len(placed_at(events)) + len(due_ids(events)) == 100


def test_a_resume_before_the_next_instant_changes_nothing_else(maker: LogMaker) -> None:
    first_at = minutely(maker)
    maker.command(pause("a"))
    (resumed,) = maker.command(resume("a"))
    assert isinstance(resumed, facts.JobResumed)
    assert resumed.next_at == first_at
    maker.clock.advance(first_at - T0)
    assert due_ids(maker.due()) == [execution_of("a", first_at)]


def test_a_resume_after_the_end_of_a_schedule_completes_the_job(maker: LogMaker) -> None:
    minutely(maker, timing=Timing(end_at=T0 + 10 * MINUTE))
    maker.command(pause("a"))
    maker.clock.advance(DAY)
    _, skipped = maker.command(resume("a", **now(maker)))
    assert isinstance(skipped, facts.ExecutionsSkipped)
    assert (skipped.count, skipped.next_at) == (10, NONE_AT)
    assert job_of(maker).status == "completed"


def calendar(maker: LogMaker, first: int, last: int) -> None:
    """Calendar `c` of these days from today, known here."""
    day = maker.clock.now() // DAY
    maker.add(
        facts.CalendarCopied(
            "acme", "c", maker.reader.position, [day + first], [day + last], is_deleted=False
        )
    )


@pytest.mark.parametrize("is_open", [False, True], ids=["nothing open", "one open"])
def test_a_resume_after_the_last_instants_of_a_schedule_were_taken_away_completes_the_job(
    maker: LogMaker, *, is_open: bool
) -> None:
    """A calendar excludes the whole pause, and the schedule has ended: there is nothing to skip, and nothing to come."""
    calendar(maker, 30, 30)
    minutely(maker, timing=Timing(end_at=T0 + 2 * DAY, exclude=["c"]))
    maker.command(pause("a"))
    if is_open:
        maker.command(run_now("a"))
        maker.due("w1.1")
    maker.clock.advance(3 * DAY)
    calendar(maker, -3, 0)
    (resumed,) = maker.command(resume("a", **now(maker)))
    assert isinstance(resumed, facts.JobResumed)
    assert resumed.next_at == NONE_AT
    maker.report(success(maker.running()))
    assert job_of(maker).status == "completed"
    view, _ = viewed(maker.records)
    found = view.job("acme", "a")
    assert found is not None
    assert (found[1].status, found[1].next_at) == ("completed", NONE_AT)


def test_what_is_open_goes_on_while_its_job_is_paused(maker: LogMaker) -> None:
    first_at = minutely(maker)
    pass_minutes(maker, 2)
    maker.command(pause("a", **now(maker)))
    maker.grant()
    assert len(maker.running()) == 2
    maker.report(success(maker.running()))
    assert job_of(maker).open == 0
    assert job_of(maker).status == "paused"
    maker.command(resume("a", **now(maker)))
    maker.clock.advance(MINUTE)
    assert due_ids(maker.due()) == [execution_of("a", first_at + 2 * MINUTE)]


def test_a_one_off_that_was_paused_past_its_instant_runs_when_it_is_resumed(maker: LogMaker) -> None:
    maker.command(submit("a", run_at=T0 + 1_000))
    maker.command(pause("a"))
    maker.clock.advance(31 * DAY)
    assert maker.due() == []
    (resumed,) = maker.command(resume("a", **now(maker)))
    assert isinstance(resumed, facts.JobResumed)
    assert resumed.next_at == T0 + 1_000
    assert due_ids(maker.due()) == [execution_of("a", T0 + 1_000)]


def test_a_one_off_that_is_due_already_can_be_paused_and_resumed_all_the_same(maker: LogMaker) -> None:
    maker.command(submit("a"))
    maker.due()
    maker.command(pause("a"))
    (resumed,) = maker.command(resume("a"))
    assert isinstance(resumed, facts.JobResumed)
    assert resumed.next_at == NONE_AT
    maker.command(pause("a"))
    assert maker.due() == []
    maker.grant()
    maker.report(success(maker.running()))
    assert job_of(maker).status == "completed"


def test_a_paused_job_still_runs_when_it_is_told_to(maker: LogMaker) -> None:
    minutely(maker)
    maker.command(pause("a"), run_now("a", command_id="x"))
    assert due_ids(maker.due()) == ["a:rx"]


@pytest.mark.parametrize("when", [{"cron": "* * * * *"}, {"delay_ms": 5}, {}], ids=str)
def test_a_paused_job_can_be_cancelled(maker: LogMaker, when: dict[str, object]) -> None:
    maker.command(submit("a", **when), pause("a"), cancel("a"))
    assert job_of(maker).status == "cancelled"
    assert job_of(maker).open == 0
    maker.clock.advance(DAY)
    assert maker.due() == []


def test_what_is_so_already_changes_nothing(maker: LogMaker) -> None:
    minutely(maker)
    assert answered(maker.command(resume("a"))) == "active"
    again = pause("a")
    maker.command(again)
    assert maker.command(again) == []
    assert answered(maker.command(pause("a"))) == "paused"


@pytest.mark.parametrize("make", [pause, resume, edit, cancel])
def test_a_change_from_another_version_is_refused_with_the_one_that_is_there(
    maker: LogMaker, make: Callable[..., object]
) -> None:
    minutely(maker)
    command = make("a", expected_version=2)
    (event,) = maker.command(command)  # type: ignore[arg-type]  # a command, whichever
    assert isinstance(event, facts.CommandRejected)
    assert (event.reason, event.field) == ("stale_version", "expected_version")
    assert "version 1" in event.detail


@pytest.mark.parametrize("make", [pause, resume, edit])
def test_a_closed_job_and_one_that_is_not_there_cannot_be_changed(
    maker: LogMaker, make: Callable[..., object]
) -> None:
    assert refused(maker.command(make("a"))) == ("not_found", "id")  # type: ignore[arg-type]  # as above
    maker.command(submit("a", delay_ms=5), cancel("a"))
    assert refused(maker.command(make("a"))) == ("job_closed", "id")  # type: ignore[arg-type]  # as above


# -- edits


def test_an_edit_makes_the_next_version_from_its_stamp_on(maker: LogMaker) -> None:
    minutely(maker)
    command = edit("a", cron="30 * * * *", payload=b"[1]", actor="me")
    (event,) = maker.command(replace(command, reason="less often"), stamp=T0 + 7)
    assert isinstance(event, facts.JobEdited)
    assert (event.version, event.reason) == (2, "less often")
    job = event.job
    assert (job.cron, job.payload, job.accepted_at, job.actor) == ("30 * * * *", b"[1]", T0 + 7, "me")
    assert job.next_at > T0 + 7
    assert job.next_at % HOUR == 30 * MINUTE
    maker.clock.advance(job.next_at - T0)
    (due,) = maker.due()
    assert isinstance(due, facts.ExecutionsQueued)
    assert due.versions == [2]
    assert due.scheduled_at == [job.next_at]


def test_an_overdue_instant_of_the_version_so_far_runs_with_it(maker: LogMaker) -> None:
    """It was due before the edit, and only not on record yet."""
    first_at = minutely(maker)
    maker.clock.advance(3 * MINUTE)
    *owed, edited = maker.command(edit("a", cron="30 * * * *", **now(maker)))
    assert placed_at(owed) == [first_at, first_at + MINUTE]
    assert due_ids(owed) == [execution_of("a", first_at + 2 * MINUTE)]
    assert isinstance(edited, facts.JobEdited)
    assert edited.job.next_at % HOUR == 30 * MINUTE
    row = keys.job_row("acme", "a")
    assert [execution.version for _, execution in maker.book.executions_of(row)] == [1, 1, 1]
    maker.clock.advance(1_000)
    assert len(due_ids(maker.due())) == 2


def test_an_overdue_instant_before_an_edit_of_the_payload_comes_once(maker: LogMaker) -> None:
    first_at = minutely(maker)
    maker.clock.advance(MINUTE)
    queued, edited = maker.command(edit("a", cron="* * * * *", payload=b"2", **now(maker)))
    assert isinstance(edited, facts.JobEdited)
    assert due_ids([queued]) == [execution_of("a", first_at)]
    assert edited.job.next_at == first_at + MINUTE
    assert maker.due() == []


def test_a_schedule_that_is_over_and_owes_nothing_cannot_be_edited(maker: LogMaker) -> None:
    minutely(maker, timing=Timing(end_at=T0 + 2 * MINUTE), policy=Policy(start_deadline_ms=1_000))
    maker.clock.advance(DAY)
    same = {"cron": "* * * * *", "timing": Timing(end_at=T0 + 2 * MINUTE), **now(maker)}
    assert refused(maker.command(edit("a", **same))) == ("job_closed", "id")


def test_a_schedule_that_is_over_goes_on_when_its_end_moves(maker: LogMaker) -> None:
    minutely(maker, timing=Timing(end_at=T0 + 2 * MINUTE), policy=Policy(start_deadline_ms=1_000))
    maker.clock.advance(DAY)
    skipped, edited = maker.command(edit("a", cron="* * * * *", **now(maker)))
    assert isinstance(skipped, facts.ExecutionsSkipped)
    assert skipped.next_at == UNCHANGED
    assert isinstance(edited, facts.JobEdited)
    assert edited.job.next_at == (maker.clock.now() // MINUTE + 1) * MINUTE
    assert job_of(maker).status == "active"


def test_an_edit_that_was_late_gives_no_instant_twice(maker: LogMaker) -> None:
    """It lay undecided while an instant of the version so far came due: that one gave an execution its id."""
    first_at = minutely(maker)
    stamp = maker.clock.now()
    maker.clock.advance(MINUTE)
    maker.due()
    (edited,) = maker.command(edit("a", cron="*/1 * * * *"), stamp=stamp)
    assert isinstance(edited, facts.JobEdited)
    assert edited.job.next_at == first_at + MINUTE


@pytest.mark.parametrize("overlap", ["skip", "queue_one", "queue_all", "cancel_running"])
def test_a_late_edit_gives_no_instant_twice_that_was_held_or_skipped(maker: LogMaker, overlap: str) -> None:
    """What comes due in one go after an outage is on record behind the instant that runs."""
    first_at = minutely(maker, timing=Timing(overlap=overlap))
    maker.clock.advance(4 * MINUTE)
    maker.due("w1.1")
    last_at = first_at + 3 * MINUTE
    assert job_of(maker).last_at == last_at
    (edited,) = maker.command(
        edit("a", cron="* * * * *", timing=Timing(overlap=overlap, max_runs=9)), stamp=first_at + 1
    )
    assert isinstance(edited, facts.JobEdited)
    assert edited.job.next_at == last_at + MINUTE


def test_a_late_edit_to_a_delay_gives_no_instant_twice(maker: LogMaker) -> None:
    first_at = minutely(maker)
    maker.clock.advance(MINUTE)
    maker.due()
    (edited,) = maker.command(edit("a", delay_ms=0), stamp=first_at)
    assert isinstance(edited, facts.JobEdited)
    assert edited.job.next_at == first_at + 1


def test_an_open_execution_keeps_its_version_until_it_ends(maker: LogMaker) -> None:
    minutely(maker, payload=b"1")
    maker.clock.advance(MINUTE)
    maker.due()
    maker.command(edit("a", cron="* * * * *", payload=b"2", **now(maker)))
    maker.clock.advance(MINUTE)
    maker.due()
    row = keys.job_row("acme", "a")
    assert [execution.version for _, execution in maker.book.executions_of(row)] == [1, 2]
    assert [spec.payload for _, spec in maker.book.specs.scan(row)] == [b"1", b"2"]
    maker.grant(count=1)
    (held,) = maker.running()
    maker.report(failure(held))
    maker.clock.advance(MINUTE)
    maker.due(SESSION)
    (held,) = [one for one in maker.running() if one.execution.attempt == 2]
    assert held.execution.version == 1
    maker.report(success([held]))
    assert [spec.payload for _, spec in maker.book.specs.scan(row)] == [b"2"]


def test_an_older_version_stays_while_any_execution_has_it(maker: LogMaker) -> None:
    minutely(maker)
    pass_minutes(maker, 3, SESSION)
    maker.command(edit("a", cron="* * * * *", payload=b"2", **now(maker)))
    row = keys.job_row("acme", "a")
    versions = []
    for held in maker.running():
        maker.report(success([held]))
        versions.append(len(list(maker.book.specs.scan(row))))
    assert versions == [2, 2, 1]
    assert job_of(maker).older == []


def test_a_deadline_of_an_older_version_goes_with_its_execution(maker: LogMaker) -> None:
    minutely(maker, policy=Policy(deadline_ms=DAY))
    maker.clock.advance(MINUTE)
    maker.due(SESSION)
    maker.command(edit("a", cron="30 * * * *", **now(maker)))
    maker.report(success(maker.running()))
    assert [keys.index_parts(key)[1] for key, _ in maker.book.index.scan(b"")] == [keys.JOB]


def test_a_job_becomes_one_that_fires_once_and_back(maker: LogMaker) -> None:
    first_at = minutely(maker)
    maker.command(edit("a", run_at=T0 + DAY))
    row = keys.job_row("acme", "a")
    assert (job_of(maker).is_once, job_of(maker).open) == (True, 1)
    assert is_to_come(maker.book, row, job_of(maker))
    maker.clock.advance(HOUR)
    assert maker.due() == []
    (edited,) = maker.command(edit("a", cron="* * * * *", **now(maker)))
    assert isinstance(edited, facts.JobEdited)
    assert (job_of(maker).is_once, job_of(maker).open) == (False, 0)
    assert edited.job.next_at == first_at + HOUR
    maker.clock.advance(MINUTE)
    assert due_ids(maker.due()) == [execution_of("a", first_at + HOUR)]


def test_a_one_off_runs_at_its_new_instant_alone(maker: LogMaker) -> None:
    maker.command(submit("a", run_at=T0 + 1_000), edit("a", run_at=T0 + 5_000))
    maker.clock.advance(1_000)
    assert maker.due() == []
    maker.clock.advance(4_000)
    assert due_ids(maker.due(SESSION)) == [execution_of("a", T0 + 5_000)]
    maker.report(success(maker.running()))
    assert job_of(maker).status == "completed"


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_one_off_that_is_due_gets_no_other_schedule(maker: LogMaker, is_recorded: bool) -> None:
    maker.command(submit("a", run_at=T0 + 1_000))
    maker.clock.advance(1_000)
    if is_recorded:
        maker.due()
    for when in ({"run_at": T0 + DAY}, {"cron": "* * * * *"}, {"delay_ms": 5}):
        assert refused(maker.command(edit("a", **when, **now(maker)))) == ("already_due", "run_at")


def test_a_one_off_that_is_due_can_get_another_payload_for_what_is_run_now(maker: LogMaker) -> None:
    maker.command(submit("a", run_at=T0))
    maker.due()
    (edited,) = maker.command(edit("a", run_at=T0, payload=b"2"))
    assert isinstance(edited, facts.JobEdited)
    assert edited.job.next_at == NONE_AT
    maker.command(run_now("a"))
    (due,) = maker.due()
    assert isinstance(due, facts.ExecutionsQueued)
    assert due.versions == [2]
    maker.grant()
    maker.report(success(maker.running()))
    assert job_of(maker).status == "completed"


def test_an_edit_of_a_paused_job_leaves_it_paused_and_its_pause_on_record(maker: LogMaker) -> None:
    first_at = minutely(maker)
    maker.command(pause("a"))
    maker.clock.advance(HOUR)
    skipped, edited = maker.command(edit("a", cron="30 * * * *", **now(maker)))
    assert skipped == facts.ExecutionsSkipped(
        "acme", "a", "paused", first_at, first_at + 59 * MINUTE, 60, UNCHANGED
    )
    assert isinstance(edited, facts.JobEdited)
    assert job_of(maker).status == "paused"
    maker.clock.advance(HOUR)
    assert maker.due() == []
    _, skipped = maker.command(resume("a", **now(maker)))
    assert isinstance(skipped, facts.ExecutionsSkipped)
    assert (skipped.first_at, skipped.count) == (edited.job.next_at, 1)


def test_a_paused_one_off_past_its_instant_can_get_another(maker: LogMaker) -> None:
    maker.command(submit("a", run_at=T0 + 1_000), pause("a"))
    maker.clock.advance(HOUR)
    (edited,) = maker.command(edit("a", run_at=T0 + DAY, **now(maker)))
    assert isinstance(edited, facts.JobEdited)
    maker.command(resume("a", **now(maker)))
    assert maker.due() == []
    maker.clock.advance(DAY - HOUR)
    assert due_ids(maker.due()) == [execution_of("a", T0 + DAY)]


@pytest.mark.parametrize(
    "body",
    [
        {"cron": "* * * * *"},
        {"every_ms": 5_000},
        {"delay_ms": 5_000},
        {"run_at": T0 + 9, "payload": b"1"},
    ],
    ids=str,
)
def test_the_same_body_again_changes_nothing(maker: LogMaker, body: dict[str, object]) -> None:
    maker.command(submit("a", **body))
    assert answered(maker.command(edit("a", **body))) == "unchanged"
    maker.command(edit("a", run_at=T0 + HOUR))
    assert kinds(maker.command(edit("a", **body))) == ["JobEdited"]
    assert answered(maker.command(edit("a", **body))) == "unchanged"


def test_what_says_the_same_in_other_words_changes_nothing(maker: LogMaker) -> None:
    maker.command(submit("a", delay_ms=5_000, policy=Policy()))
    assert answered(maker.command(edit("a", run_at=T0 + 5_000, late="run"))) == "unchanged"


def test_a_create_is_known_by_its_body_after_an_edit(maker: LogMaker) -> None:
    maker.command(submit("a", cron="* * * * *"), edit("a", cron="30 * * * *"))
    assert answered(maker.command(submit("a", cron="* * * * *"))) == "exists"
    assert refused(maker.command(submit("a", cron="30 * * * *"))) == ("id_exists", "id")


def test_an_interval_keeps_its_anchor_unless_it_changes(maker: LogMaker) -> None:
    maker.command(submit("a", every_ms=10_000))
    maker.clock.advance(4_000)
    (edited,) = maker.command(edit("a", every_ms=10_000, payload=b"2", **now(maker)))
    assert isinstance(edited, facts.JobEdited)
    assert (edited.job.anchor_at, edited.job.next_at) == (T0, T0 + 10_000)
    (edited,) = maker.command(edit("a", every_ms=20_000, **now(maker)))
    assert isinstance(edited, facts.JobEdited)
    assert (edited.job.anchor_at, edited.job.next_at) == (T0 + 4_000, T0 + 24_000)


@pytest.mark.parametrize(
    ("body", "reason", "field"),
    [
        ({"cron": "* * * *"}, "invalid", "cron"),
        ({"cron": "0 0 30 2 *"}, "invalid", "cron"),
        ({"cron": "* * * * *", "timing": Timing(end_at=T0)}, "invalid", "end_at"),
        ({"run_at": T0 - 2 * DAY}, "invalid", "run_at"),
        ({"delay_ms": 5, "queue": "nowhere"}, "unknown_queue", "queue"),
        ({"delay_ms": 5, "payload": b"{"}, "invalid", "payload"),
        ({"delay_ms": 5, "timing": Timing(overlap="skip")}, "invalid", "overlap"),
    ],
    ids=str,
)
def test_a_senseless_edit_is_refused_like_a_create(
    maker: LogMaker, body: dict[str, object], reason: str, field: str
) -> None:
    minutely(maker)
    assert refused(maker.command(edit("a", **body))) == (reason, field)
    assert job_of(maker).version == 1


def test_a_job_whose_calendar_was_deleted_can_be_edited_and_name_no_other_one(maker: LogMaker) -> None:
    calendar(maker, 1, 1)
    without = Timing(exclude=["c"])
    minutely(maker, timing=without)
    maker.add(facts.CalendarCopied("acme", "c", maker.reader.position, [], [], is_deleted=True))
    (edited,) = maker.command(edit("a", cron="* * * * *", timing=without, payload=b"2"))
    assert isinstance(edited, facts.JobEdited)
    both = Timing(exclude=["c"], include=["d"])
    assert refused(maker.command(edit("a", cron="* * * * *", timing=both))) == (
        "unknown_calendar",
        "calendars/include",
    )
    assert refused(maker.command(submit("b", cron="* * * * *", timing=without)))[0] == "unknown_calendar"


def test_an_edit_for_other_ids_inside_is_refused(maker: LogMaker) -> None:
    minutely(maker)
    command = edit("a", delay_ms=5)
    other = replace(command, job=replace(command.job, job_id="b"))
    assert refused(maker.command(other)) == ("invalid", "job")


def test_a_limit_of_runs_counts_those_before_the_edit(maker: LogMaker) -> None:
    minutely(maker)
    maker.clock.advance(2 * MINUTE)
    assert refused(maker.command(edit("a", cron="* * * * *", timing=Timing(max_runs=2), **now(maker)))) == (
        "invalid",
        "max_runs",
    )


def test_of_two_edits_from_one_version_the_second_is_refused(maker: LogMaker) -> None:
    minutely(maker)
    first, second = maker.command(
        edit("a", 1, payload=b"1", delay_ms=9), edit("a", 1, payload=b"2", delay_ms=9)
    )
    assert isinstance(first, facts.JobEdited)
    assert isinstance(second, facts.CommandRejected)
    assert (second.reason, second.detail.split(";")[0]) == ("stale_version", "the job is at version 2")


# -- with redrives


def dead(maker: LogMaker) -> str:
    """A minutely job's first execution is given up; its id."""
    first_at = minutely(maker, policy=Policy(max_attempts=1))
    maker.clock.advance(MINUTE)
    maker.due(SESSION)
    maker.report(failure(maker.running()[0]))
    return execution_of("a", first_at)


def redrive(maker: LogMaker, name: str, payload: bytes | None = None) -> facts.ExecutionRedriven:
    command = RedriveExecution(
        tenant="acme", job_id="a", command_id="x", execution=name, payload=payload, **now(maker)
    )
    (event,) = maker.command(command)
    assert isinstance(event, facts.ExecutionRedriven)
    return event


def test_a_redriven_payload_and_an_edit_take_versions_of_their_own(maker: LogMaker) -> None:
    name = dead(maker)
    assert redrive(maker, name, b"[2]").version == 2
    assert job_of(maker).version == 1
    (edited,) = maker.command(edit("a", 1, cron="* * * * *", payload=b"[3]", **now(maker)))
    assert isinstance(edited, facts.JobEdited)
    assert edited.version == 3
    maker.due(SESSION)
    (held,) = maker.running()
    assert held.execution.version == 2
    maker.report(success([held]))
    assert [spec.payload for _, spec in maker.book.specs.scan(keys.job_row("acme", "a"))] == [b"[3]"]


def test_a_redriven_execution_runs_with_the_version_that_died(maker: LogMaker) -> None:
    name = dead(maker)
    maker.command(edit("a", cron="* * * * *", payload=b"[3]", **now(maker)))
    assert redrive(maker, name).version == 1
    maker.due(SESSION)
    (held,) = maker.running()
    assert held.execution.version == 1
    maker.report(success([held]))
    assert job_of(maker).older == []


def test_a_closed_job_of_which_one_execution_is_redriven_cannot_be_edited(maker: LogMaker) -> None:
    maker.command(submit("a", policy=Policy(max_attempts=1)))
    maker.due(SESSION)
    maker.report(failure(maker.running()[0]))
    redrive(maker, execution_of("a", T0))
    assert refused(maker.command(edit("a", run_at=T0, payload=b"2"))) == ("job_closed", "id")


def test_a_redrive_leaves_a_paused_job_paused(maker: LogMaker) -> None:
    name = dead(maker)
    maker.command(pause("a", **now(maker)))
    redrive(maker, name)
    assert job_of(maker).status == "paused"
    view, _ = viewed(maker.records)
    found = view.job("acme", "a")
    assert found is not None
    assert found[1].status == "paused"


# -- pause on failure


def test_a_job_pauses_itself_when_an_execution_is_given_up_and_not_before(maker: LogMaker) -> None:
    first_at = minutely(
        maker,
        policy=Policy(max_attempts=2, first_ms=10, jitter=0.0),
        timing=Timing(is_paused_on_failure=True),
    )
    maker.clock.advance(MINUTE)
    maker.due(SESSION)
    assert kinds(maker.report(failure(maker.running()[0]))) == ["AttemptFailed"]
    maker.clock.advance(1_000)
    maker.due(SESSION)
    events = maker.report(failure(maker.running()[0]))
    assert kinds(events) == ["AttemptFailed", "ExecutionDead", "AlertRaised", "JobPaused"]
    pause_ = events[-1]
    assert isinstance(pause_, facts.JobPaused)
    assert (pause_.command_id, pause_.cause) == ("", "failure")
    assert execution_of("a", first_at) in pause_.reason
    maker.clock.advance(HOUR)
    assert maker.due() == []
    assert kinds(maker.command(resume("a", **now(maker)))) == ["JobResumed", "ExecutionsSkipped"]


def test_a_job_that_is_paused_already_or_over_is_not_paused_by_a_failure(maker: LogMaker) -> None:
    once = {"policy": Policy(max_attempts=1), "timing": Timing(is_paused_on_failure=True)}
    maker.command(submit("once", **once))
    minutely(maker, **once)
    maker.clock.advance(MINUTE)
    maker.due(SESSION)
    maker.command(pause("a", **now(maker)))
    for held in maker.running():
        assert "JobPaused" not in kinds(maker.report(failure(held)))


# -- the read model


def test_the_view_shows_versions_pauses_and_what_is_next(maker: LogMaker) -> None:
    minutely(maker, payload=b"1")
    maker.command(edit("a", cron="30 * * * *", payload=b"2"), stamp=T0 + 5)
    maker.command(edit("a", run_at=T0 + DAY, payload=b"3"), stamp=T0 + 6)
    maker.command(pause("a", reason="why", actor="me"), stamp=T0 + 7)
    view, rows = viewed(maker.records)
    rows.write(*view.drain())
    found = view.job("acme", "a")
    assert found is not None
    row, progress = found
    assert (row.version, row.payload, row.first_at, row.created_at) == (3, b"3", T0 + DAY, T0)
    assert (progress.status, progress.version, progress.next_at) == ("paused", 3, T0 + DAY)
    assert progress.pause is not None
    assert (progress.pause.at, progress.pause.cause, progress.pause.reason) == (T0 + 7, "command", "why")
    assert [(old.version, old.payload) for old in view.versions("acme", "a")] == [
        (3, b"3"),
        (2, b"2"),
        (1, b"1"),
    ]
    assert [old.version for old in view.versions("acme", "a", 2)] == [2, 1]


# -- with jitter, overlap, calendars and runs


def test_an_instant_whose_jitter_is_not_over_is_not_due_at_an_edit(maker: LogMaker) -> None:
    """Its time has come, but it is due later: the edit holds for it."""
    first_at = minutely(maker, timing=Timing(jitter_ms=HOUR))
    maker.clock.advance(first_at - T0 + 1)
    same = {"cron": "* * * * *", "timing": Timing(jitter_ms=HOUR)}
    (edited,) = maker.command(edit("a", payload=b"2", **same, **now(maker)))
    assert isinstance(edited, facts.JobEdited)
    assert edited.job.next_at == first_at
    (edited,) = maker.command(edit("a", cron="30 * * * *", **now(maker)))
    assert isinstance(edited, facts.JobEdited)
    assert edited.job.next_at > maker.clock.now()


def test_a_one_off_can_be_moved_until_its_jitter_is_over(maker: LogMaker) -> None:
    maker.command(submit("a", run_at=T0, timing=Timing(jitter_ms=HOUR)))
    (edited,) = maker.command(edit("a", run_at=T0 + DAY))
    assert isinstance(edited, facts.JobEdited)
    assert job_of(maker).runs == 0


def test_what_is_held_stays_so_through_an_edit_and_goes_its_way_with_its_version(maker: LogMaker) -> None:
    minutely(maker, timing=Timing(overlap="queue_all"))
    pass_minutes(maker, 3, SESSION)
    assert len(job_of(maker).held) == 2
    maker.command(edit("a", cron="30 * * * *", payload=b"2", **now(maker)))
    assert (len(job_of(maker).held), job_of(maker).older) == (2, [(1, 3)])
    for left in (1, 0):
        maker.report(success(maker.running()))
        assert len(job_of(maker).held) == left
        maker.due(SESSION)
        (held,) = maker.running()
        assert held.execution.version == 1
    maker.report(success(maker.running()))
    assert job_of(maker).older == []


def test_a_held_execution_goes_its_way_while_its_job_is_paused(maker: LogMaker) -> None:
    minutely(maker, timing=Timing(overlap="queue_one"))
    pass_minutes(maker, 2, SESSION)
    maker.command(pause("a", **now(maker)))
    maker.report(success(maker.running()))
    assert len(due_ids(maker.due(SESSION))) == 1


def test_what_is_held_does_not_wait_for_the_instant_of_an_edit(maker: LogMaker) -> None:
    minutely(maker, timing=Timing(overlap="queue_all"))
    pass_minutes(maker, 3, SESSION)
    maker.command(edit("a", delay_ms=DAY, **now(maker)))
    for _ in range(3):
        maker.report(success(maker.running()))
        maker.due(SESSION)
    assert (job_of(maker).held, job_of(maker).open) == ([], 1)


def test_an_edit_ends_a_schedule_that_has_run_often_enough(maker: LogMaker) -> None:
    minutely(maker, timing=Timing(max_runs=2))
    pass_minutes(maker, 2, SESSION)
    assert job_of(maker).next_at == NONE_AT
    (edited,) = maker.command(edit("a", cron="* * * * *", timing=Timing(max_runs=3), **now(maker)))
    assert isinstance(edited, facts.JobEdited)
    assert edited.job.next_at > maker.clock.now()
    pass_minutes(maker, 2, SESSION)
    assert (job_of(maker).runs, job_of(maker).next_at) == (3, NONE_AT)


def test_an_edit_at_the_last_run_of_a_schedule_leaves_it_over(maker: LogMaker) -> None:
    minutely(maker, timing=Timing(max_runs=1))
    maker.clock.advance(MINUTE)
    same = {"cron": "* * * * *", "timing": Timing(max_runs=1), **now(maker)}
    queued, edited = maker.command(edit("a", payload=b"2", **same))
    assert len(due_ids([queued])) == 1
    assert isinstance(edited, facts.JobEdited)
    assert edited.job.next_at == NONE_AT


def test_due_counts_leave_out_paused_jobs(maker: LogMaker) -> None:
    first_at = minutely(maker)
    minute = first_at // MINUTE
    counted = []
    for command in (None, pause("a"), edit("a", cron="* * * * *", payload=b"2"), resume("a"), cancel("a")):
        if command is not None:
            maker.command(command)
        view, rows = viewed(maker.records)
        rows.write(*view.drain())
        counted.append(dict(due_counts(view, "acme", minute, minute + 1)).get(minute, 0))
    assert counted == [1, 0, 0, 1, 0]
