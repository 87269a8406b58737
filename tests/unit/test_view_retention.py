"""History of so many days: what goes, what stays, and what lists and counts show of it."""

from __future__ import annotations

import msgspec
import pytest

from minutebook.domain import view_index, view_lists
from minutebook.domain.events import Event
from minutebook.domain.view import PartitionView
from minutebook.domain.view_lists import Filter, span_of
from minutebook.domain.view_retention import Retention
from minutebook.domain.view_rows import DAY_MS, FORMAT, digest
from tests.unit.test_view import HOUR, TENANT, Reader, T, dead, due_granted, failed, submitted, succeeded

DAYS = 3
ANY_TIME = span_of(0, view_lists.LAST_AT, is_ascending=True)


class KeepingReader(Reader):
    """Keeps `DAYS` days."""

    def __init__(self, *, is_committing: bool = True) -> None:
        super().__init__()
        self.view = PartitionView(self.rows, 3, retention=Retention(DAYS))
        self.is_committing = is_committing
        self.frame(submitted(cron="0 0 * * *"))

    def run(self, day: int, *ends: Event) -> None:
        """The execution of a day comes, and ends as said."""
        at = T + day * DAY_MS
        self.now = max(self.now, at)
        self.frame(due_granted(f"j:{at}", at=at, next_at=at + DAY_MS))
        if ends:
            self.frame(*ends)

    def succeed(self, day: int) -> None:
        self.run(day, succeeded(f"j:{T + day * DAY_MS}"))

    def give_up(self, day: int) -> None:
        name = f"j:{T + day * DAY_MS}"
        self.run(day, failed(name, 1, -1), dead(name))

    def days(self) -> list[int]:
        """Days of the executions that are there, as each reader of them says."""
        self.commit()
        by_job = [(row.scheduled_at - T) // DAY_MS for _, row in self.history()]
        every = [
            (view_index.execution_of_place(place)[1] - T) // DAY_MS
            for place, _ in view_lists.executions(self.view, TENANT, Filter(), ANY_TIME)
        ]
        assert by_job == every
        assert by_job == [day for day in range(60) if self.view.execution(TENANT, f"j:{T + day * DAY_MS}")]
        totals = view_lists.counts_by_status(self.view, view_index.EXECUTION_TOTALS, TENANT)
        assert sum(totals.values()) == len(every)
        return every


@pytest.mark.parametrize("is_committing", [True, False])
def test_history_goes_by_the_day(is_committing: bool) -> None:
    reader = KeepingReader(is_committing=is_committing)
    for day in range(10):
        reader.succeed(day)
    assert reader.days() == [6, 7, 8, 9]
    assert next(reader.rows.scan("executions", b"", None))[0][2:6] == (T // DAY_MS + 6).to_bytes(4, "big")
    again = PartitionView(reader.rows, 3, retention=Retention(DAYS))
    assert again.is_of_this_format()
    assert again.kept_from == T // DAY_MS + 6


@pytest.mark.parametrize("is_committing", [True, False])
def test_what_is_open_or_was_given_up_stays(is_committing: bool) -> None:
    reader = KeepingReader(is_committing=is_committing)
    reader.run(0)
    reader.give_up(1)
    for day in range(2, 8):
        reader.succeed(day)
    assert reader.days() == [0, 1, 4, 5, 6, 7]
    assert [name for _, _, name, _ in reader.view.dead(TENANT)] == [f"j:{T + DAY_MS}"]


@pytest.mark.parametrize("is_committing", [True, False])
def test_what_ends_when_its_day_is_gone_is_still_shown(is_committing: bool) -> None:
    reader = KeepingReader(is_committing=is_committing)
    reader.run(0)
    for day in range(1, 8):
        reader.succeed(day)
    reader.frame(succeeded(f"j:{T}"))
    assert reader.days() == [0, 4, 5, 6, 7]
    reader.succeed(8)
    assert reader.days() == [0, 5, 6, 7, 8]


def test_commits_make_no_difference() -> None:
    digests = set()
    for is_committing in (True, False):
        reader = KeepingReader(is_committing=is_committing)
        reader.run(0)
        for day in range(1, 9):
            reader.give_up(day) if day % 3 == 0 else reader.succeed(day)
        reader.frame(succeeded(f"j:{T}"))
        reader.now += 30 * DAY_MS
        reader.frame()
        reader.commit()
        assert reader.days() == [3, 6]
        digests.add(digest(reader.rows, 3))
    assert len(digests) == 1


def test_another_retention_is_another_view() -> None:
    reader = KeepingReader()
    reader.succeed(5)
    assert not PartitionView(reader.rows, 3, retention=Retention(DAYS + 1)).is_of_this_format()


def test_an_empty_view_begins_with_any_retention() -> None:
    reader = Reader()
    reader.now += HOUR
    assert PartitionView(reader.rows, 3, retention=Retention(1)).is_of_this_format()


def test_rows_of_another_version_are_not_read_as_ours() -> None:
    reader = KeepingReader()
    reader.succeed(5)
    cursor = msgspec.structs.replace(reader.view.cursor, format=FORMAT - 1)
    pending = {
        "cursors": {reader.view.prefix: msgspec.msgpack.encode(cursor)},
        "retention": {reader.view.prefix: msgspec.msgpack.encode([DAYS, 20_000])},
    }
    reader.rows.write(pending, [])
    again = PartitionView(reader.rows, 3, retention=Retention(DAYS))
    assert not again.is_of_this_format()
    reader.rows.write({}, again.reset())
    again.fold([submitted()], T, 0)
    reader.rows.write(*again.drain())
    assert again.is_of_this_format()
