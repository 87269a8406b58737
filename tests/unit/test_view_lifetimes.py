"""Months of made history: what is over goes when its time has come, nothing grows, and lists and counts stay right."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from minutebook.domain import events as facts
from minutebook.domain import view_index, view_lists, view_sweep
from minutebook.domain.events import Event
from minutebook.domain.operation import OperationFact, OperationFilter
from minutebook.domain.timing import Timing
from minutebook.domain.view import PartitionView
from minutebook.domain.view_audit import AT_MAX, audited
from minutebook.domain.view_lists import Filter, span_of
from minutebook.domain.view_retention import Retention
from minutebook.domain.view_rows import DAY_MS, FAMILIES, digest
from tests.unit.test_view import HOUR, TENANT, Reader, T, dead, due_granted, failed, submitted, succeeded

KEPT = Retention(history_days=5, dead_days=12, audit_days=40)
ANY_TIME = span_of(0, view_lists.LAST_AT, is_ascending=True)
EVERY_MONTH = 42
"""Days in which each week and each month of shelves goes once."""


class Months(Reader):
    """A partition on which, day after day, one of everything happens; `hour` of a day is the same each day."""

    def __init__(self, commit_every: int = 1) -> None:
        super().__init__()
        self.view = PartitionView(self.rows, 3, retention=KEPT)
        self.commit_every = commit_every
        self.is_committing = False
        self.today = 0
        self.frame(submitted("every", next_at=T, cron="0 0 * * *"))

    def frame(self, *events: facts.Event) -> int:
        now = super().frame(*events)
        if self.position % self.commit_every == 0:
            self.commit()
        return now

    def live(self, days: int) -> None:
        for _ in range(days):
            self.day()
            self.today += 1

    def day(self) -> None:
        day, at = self.today, T + self.today * DAY_MS
        self.now = at
        # The owner says first what it forgets.
        self.frame(*([facts.DayForgotten(at // DAY_MS - 9)] if day >= 9 else []))
        self.frame(facts.SessionStarted(f"w.{day}", "w", ["task"], 10_000, 3_000))
        self.frame(submitted(f"once-{day}", next_at=at), submitted(f"bad-{day}", next_at=at))
        self.frame(submitted(f"dropped-{day}", next_at=at + HOUR))
        self.frame(due_granted(f"once-{day}:{at}", f"bad-{day}:{at}", at=at))
        self.frame(succeeded(f"once-{day}:{at}"), failed(f"bad-{day}:{at}", 1, -1), dead(f"bad-{day}:{at}"))
        self.frame(facts.JobCancelled(TENANT, f"dropped-{day}", f"x-{day}", "me", "", at, [], [], []))
        version = day + 1
        self.frame(of_version(version, due_granted(f"every:{at}", at=at, next_at=at + DAY_MS)))
        self.frame(succeeded(f"every:{at}"))
        self.frame(facts.ExecutionRequested(TENANT, "every", f"n-{day}", "me", "", at, f"every:rn-{day}"))
        self.frame(due_granted(f"every:rn-{day}", at=at, next_at=-2))
        self.frame(succeeded(f"every:rn-{day}"))
        self.frame(facts.ExecutionsSkipped(TENANT, "every", "misfire", at + 1, at + HOUR, 9, -2))
        # Filled in from long ago; and a range that was left out long ago, told only now.
        filled = at - 30 * DAY_MS + 7
        self.frame(
            facts.ExecutionsPlaced(TENANT, "every", "backfill", version, [filled], [filled], [filled], -2)
        )
        self.frame(due_granted(f"every:{filled}", at=filled, next_at=-2))
        self.frame(succeeded(f"every:{filled}"))
        self.frame(facts.ExecutionsSkipped(TENANT, "every", "paused", filled + 1, filled + 2, 2, -2))
        edit = submitted("every", next_at=at + DAY_MS, cron="0 0 * * *")
        self.frame(facts.JobEdited(day + 2, "", edited(edit, f"e-{day}", at)))
        self.frame(facts.CommandRejected(TENANT, "x", f"r-{day}", "CancelJob", "not_found", "id", "no", "me"))
        wanted = OperationFact(TENANT, f"o-{day}", "redrive", OperationFilter(), 0, "", "me", at, 3)
        self.frame(facts.OperationStarted(f"s-{day}", wanted))
        self.frame(facts.OperationEnded(TENANT, f"o-{day}", 0, 0, 0, False))
        self.frame(facts.SessionEnded(f"w.{day}", "left"))

    def since(self, days: int) -> range:
        """The days of which something that is kept for `days` more is there, once the last one is over."""
        return range(max(0, self.today - 1 - days), self.today)

    def sizes(self) -> Counter[str]:
        self.commit()
        return Counter({family: len(list(self.rows.scan(family, b"", None))) for family in FAMILIES})

    def listed(self, wanted: Filter = Filter()) -> list[bytes]:  # noqa: B008  # a tuple
        return [place for place, _ in view_lists.executions(self.view, TENANT, wanted, ANY_TIME)]


def of_version(number: int, event: facts.ExecutionsDueGranted) -> facts.ExecutionsDueGranted:
    return msgspec.structs.replace(event, versions=[number] * len(event.executions))


def edited(job: facts.JobSubmitted, command_id: str, at: int) -> facts.JobSubmitted:
    return msgspec.structs.replace(job, command_id=command_id, accepted_at=at)


def most(months: Months, days: int) -> Counter[str]:
    """The most rows of each family on any of these days."""
    found: Counter[str] = Counter()
    for _ in range(days):
        months.live(1)
        found |= months.sizes()
    return found


def test_nothing_grows() -> None:
    months = Months()
    months.live(70)
    before = most(months, EVERY_MONTH)
    months.live(60)
    assert most(months, EVERY_MONTH) == before


@pytest.fixture(scope="module")
def months() -> Months:
    made = Months()
    made.live(60)
    made.commit()
    return made


def test_lists_and_counts_are_of_what_is_kept(months: Months) -> None:
    history, given_up, closed = (months.since(days) for days in (5, 12, 8))
    # Of each day: once, the recurring one, the one asked for, and the skipped range; what came late counts from its end.
    ended = 6 * len(history)
    assert len(months.listed()) == ended + len(given_up)
    assert len(months.listed(Filter("failed"))) == len(given_up)
    assert len(months.listed(Filter(error_type="ValueError"))) == len(given_up)
    totals = view_lists.counts_by_status(months.view, view_index.EXECUTION_TOTALS, TENANT)
    assert totals == {"succeeded": 4 * len(history), "skipped": 2 * len(history), "failed": len(given_up)}
    assert [name for _, _, name, _ in months.view.dead(TENANT)] == [
        f"bad-{day}:{T + day * DAY_MS}" for day in given_up
    ]
    jobs = view_lists.counts_by_status(months.view, view_index.JOB_COUNTS, TENANT)
    assert jobs == {
        "active": 1, "completed": len(closed), "cancelled": len(closed), "dead": len(given_up),
    }  # fmt: skip
    listed = list(view_lists.jobs(months.view, TENANT, Filter(), ANY_TIME))
    assert len(listed) == sum(jobs.values())
    for day in range(60):
        for name, kept in (("once", closed), ("dropped", closed), ("bad", given_up)):
            assert (months.view.job(TENANT, f"{name}-{day}") is not None) == (day in kept)


def test_a_jobs_own_counts_are_of_all_that_ever_ran(months: Months) -> None:
    found = months.view.progress(TENANT, "every")
    assert found is not None
    assert (found.succeeded, found.skipped, found.open) == (3 * 60, 11 * 60, 0)


def test_what_was_asked_for_is_found_while_it_is_kept(months: Months) -> None:
    for day in range(60):
        found = months.view.execution(TENANT, f"every:rn-{day}")
        assert (found is not None) == (day in months.since(5))
    assert months.sizes()["requests"] == len(months.since(5))


def test_skipped_ranges_are_told_by_time_while_they_are_kept(months: Months) -> None:
    found = [row.skip.last_at for row in months.view.skipped(TENANT, "every", 0) if row.skip is not None]
    late = [T + (day - 30) * DAY_MS + 9 for day in months.since(5)]
    assert found == late + [T + day * DAY_MS + HOUR for day in months.since(5)]
    start_at = T + months.since(5)[2] * DAY_MS
    assert len(list(months.view.skipped(TENANT, "every", start_at))) == 4


def test_answers_are_there_for_a_week_more_and_the_record_for_a_month_more_at_most(months: Months) -> None:
    def answered(day: int) -> bool:
        return months.view.command(TENANT, f"r-{day}", "x") is not None

    assert all(answered(day) for day in months.since(8))
    assert not any(answered(day) for day in range(60) if day not in months.since(8 + 6))
    assert [row.job_id for row in months.view.commands(TENANT, "r-59")] == ["x"]
    assert list(months.view.commands(TENANT, "r-1")) == []
    months.commit()
    found = list(audited(months.view, TENANT, AT_MAX))
    assert [one.at for one in found] == sorted((one.at for one in found), reverse=True)
    rejected = [
        int(one.row.command_id[2:]) for one in found if one.row.command == "CancelJob" and one.row.code
    ]
    assert rejected == list(range(59, 59 - len(rejected), -1))
    assert 41 <= len(rejected) <= 41 + 29


def test_versions_stay_as_long_as_what_may_have_run_by_them(months: Months) -> None:
    found = [row.version for row in months.view.versions(TENANT, "every")]
    assert found == list(range(61, 61 - 1 - len(months.since(12)), -1))


def test_a_version_stays_while_something_open_runs_by_it() -> None:
    months = Months()
    months.live(1)
    months.frame(facts.ExecutionRequested(TENANT, "every", "late", "me", "", months.now, "every:rlate"))
    months.live(40)
    assert [row.version for row in months.view.versions(TENANT, "every")][-1] == 2
    months.frame(due_granted("every:rlate", at=T, next_at=-2))
    months.frame(succeeded("every:rlate"))
    months.live(7)
    assert months.view.execution(TENANT, "every:rlate") is None
    assert [row.version for row in months.view.versions(TENANT, "every")][-1] > 2


def test_a_list_goes_on_from_a_place_whose_row_has_gone() -> None:
    months = Months()
    months.live(30)
    months.commit()
    shown = months.listed()
    place = shown[3]
    months.live(3)
    months.commit()
    rest = [
        at
        for at, _ in view_lists.executions(
            months.view, TENANT, Filter(), span_of(0, view_lists.LAST_AT, True, place)
        )
    ]
    assert place not in rest
    assert rest == [at for at in months.listed() if at >= place]


def test_a_dead_execution_that_is_redriven_counts_from_its_new_end() -> None:
    months = Months()
    months.live(1)
    name = f"bad-0:{T}"
    months.frame(
        facts.ExecutionRedriven(
            TENANT, "bad-0", "again", "me", "", months.now, name, 2, 1, 1, False, b"", b""
        )
    )
    months.live(6)
    months.frame(due_granted(name, at=T, next_at=-2, attempt=2))
    months.frame(failed(name, 2, -1), dead(name, 2))
    months.live(12)
    assert months.view.execution(TENANT, name) is not None, "12 days after its second end"
    assert months.view.job(TENANT, "bad-0") is not None
    months.live(1)
    assert months.view.execution(TENANT, name) is None
    assert months.view.job(TENANT, "bad-0") is None


def test_what_the_owner_has_not_forgotten_stays() -> None:
    reader = Months()
    reader.frame(submitted("once", next_at=T))
    reader.frame(due_granted(f"once:{T}"))
    reader.frame(succeeded(f"once:{T}"))
    closed_on = reader.now // DAY_MS
    reader.now += 100 * DAY_MS
    reader.frame()
    assert reader.view.job(TENANT, "once") is not None
    reader.now += DAY_MS
    reader.frame(facts.DayForgotten(closed_on))
    assert reader.view.job(TENANT, "once") is None


@pytest.mark.parametrize("commit_every", [17, 10_000])
def test_commits_and_restarts_make_no_difference(commit_every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_sweep, "FRAME_MIN", 2)
    digests = set()
    for every, is_restarted in ((1, False), (commit_every, False), (commit_every, True)):
        months = Months(every)
        for _ in range(40):
            months.live(1)
            if is_restarted:
                months.commit()
                months.view = PartitionView(months.rows, 3, retention=KEPT)
        months.commit()
        digests.add(digest(months.rows, 3))
    assert len(digests) == 1


def test_a_frame_lets_go_of_few_rows_and_of_as_many_as_it_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_sweep, "FRAME_MIN", 3)
    reader = Months()
    names = [f"once-{number}" for number in range(10)]
    reader.frame(*(submitted(name) for name in names))
    runs = [f"{name}:{T}" for name in names]
    reader.frame(due_granted(*runs))
    reader.frame(succeeded(*runs))

    def left() -> int:
        return sum(reader.view.job(TENANT, name) is not None for name in names)

    reader.now += 9 * DAY_MS
    reader.frame(facts.DayForgotten(T // DAY_MS))
    assert left() == 7
    at = reader.now
    reader.frame(submitted("more"), due_granted(f"more:{at}", at=at), succeeded(f"more:{at}"))
    assert left() == 3, "three, and one for the one that it closed"


# -- what comes again, late, or under another version


def on_day(reader: Months, day: int, *events: Event) -> None:
    """A frame on that day after the first."""
    reader.now = max(reader.now, T + day * DAY_MS)
    reader.frame(*events)


def kept_as(retention: Retention) -> Reader:
    reader = Reader()
    reader.view = PartitionView(reader.rows, 3, retention=retention)
    return reader


def later() -> facts.JobSubmitted:
    return submitted("j", next_at=T + 900 * DAY_MS, cron="0 0 * * *")


def asked(day: int) -> facts.ExecutionRequested:
    return facts.ExecutionRequested(TENANT, "every", "n", "me", "", T + day * DAY_MS, "every:rn")


def granted_again(day: int) -> facts.ExecutionsDueGranted:
    return due_granted("every:rn", at=T + day * DAY_MS, next_at=-2)


def opened_anew(reader: Months) -> None:
    reader.commit()
    reader.view = PartitionView(reader.rows, 3, retention=KEPT)


@pytest.mark.parametrize("is_dead", [False, True], ids=["succeeded", "dead"])
def test_a_run_now_whose_command_comes_again_is_found_when_the_first_has_gone(is_dead: bool) -> None:
    """The owner has forgotten the command by then, and takes it for a new one."""
    reader = kept_as(KEPT)
    on_day(reader, 0, submitted("every", next_at=T + 400 * DAY_MS, cron="0 0 * * *"))
    on_day(reader, 1, asked(1))
    on_day(reader, 1, granted_again(1))
    on_day(
        reader, 1, *([failed("every:rn", 1, -1), dead("every:rn")] if is_dead else [succeeded("every:rn")])
    )
    last = KEPT.given_up_days + 1 if is_dead else KEPT.closed_days + 1
    for day in range(9, last):
        on_day(reader, day, facts.DayForgotten(T // DAY_MS + day - 9))
    on_day(reader, last, asked(last))
    for day in range(last + 1, last + 5):
        on_day(reader, day, facts.DayForgotten(T // DAY_MS + day - 9))
    opened_anew(reader)
    assert reader.view.execution(TENANT, "every:rn") is not None
    on_day(reader, last + 5, granted_again(last))
    on_day(reader, last + 5, succeeded("every:rn"))
    assert [row.last.status for name, row in reader.history("every") if name == "every:rn"][-1] == "succeeded"


def test_a_version_stays_for_what_ran_by_it_after_the_edit_was_stamped() -> None:
    """The owner was away: what is due comes first, and then the command that waited."""
    kept = Retention(history_days=12, dead_days=12, audit_days=40)
    reader = kept_as(kept)
    on_day(reader, 0, submitted("j", next_at=T + DAY_MS, cron="0 0 * * *"))
    ran = T + 3 * DAY_MS
    on_day(reader, 3, due_granted(f"j:{ran}", at=ran, next_at=T + 900 * DAY_MS))
    on_day(reader, 3, facts.JobEdited(2, "", edited(later(), "e", T + DAY_MS)), succeeded(f"j:{ran}"))
    on_day(reader, 12, facts.JobCancelled(TENANT, "j", "x", "me", "", reader.now, [], [], []))
    for day in range(13, 16):
        on_day(reader, day)
    reader.commit()
    reader.view = PartitionView(reader.rows, 3, retention=kept)
    assert [name for name, _ in reader.history("j")] == [f"j:{ran}"]
    reader.frame(facts.JobPurged(TENANT, "j", "p", "me", "", reader.now))
    assert reader.view.job(TENANT, "j") is None


@pytest.mark.parametrize("is_purged", [False, True])
def test_nothing_is_left_of_a_calendar_that_an_earlier_version_named(is_purged: bool) -> None:
    reader = kept_as(KEPT)
    first = msgspec.structs.replace(later(), timing=Timing(exclude=["holidays"]))
    on_day(reader, 0, first)
    on_day(reader, 1, facts.JobEdited(2, "", edited(later(), "e", T + DAY_MS)))
    for day in range(2, 30):
        on_day(reader, day)
    assert not list(reader.rows.scan("versions", b"", None))
    on_day(reader, 30, facts.JobCancelled(TENANT, "j", "x", "me", "", reader.now, [], [], []))
    if is_purged:
        on_day(reader, 31, facts.JobPurged(TENANT, "j", "p", "me", "", reader.now))
    for day in range(39, 100):
        on_day(reader, day, facts.DayForgotten(T // DAY_MS + day - 9))
    reader.commit()
    for family in ("jobs", "progress", "versions", "calendar_jobs", "expiries"):
        assert not list(reader.rows.scan(family, b"", None)), family
