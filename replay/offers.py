"""What workers offered while an execution waited, from `worker-reports`, as long as Kafka keeps that topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Final, Protocol

import msgspec
from kafka.errors import KafkaError

from minutebook.domain.records import QueueOffer
from minutebook.domain.senseless import NAME_CHARS_MAX
from minutebook.errors import SettingsError
from minutebook.history.why import NAMED_MAX, Reason, Wait
from minutebook.log.port import RawRecord
from minutebook.times import format_instant
from minutebook.wire.report_heads import ReportHead, read_head

LOOK_BACK_MS: Final = 60_000
"""Before the wait: what every living session has said within this, as owners count on when they take over."""
SESSIONS_MAX: Final = 10_000


class Reports(Protocol):
    """The topic `worker-reports`."""

    def bounds(self, partition: int) -> tuple[int, int]:
        """Offset of the first record still kept, and that after the last one."""
        ...

    def offset_at(self, partition: int, at: int) -> int:
        """Offset of the first record stamped `at` (ms) or later; that after the last one where there is none."""
        ...

    def read(self, partition: int, start: int, end: int) -> Iterator[RawRecord]:
        """Records from `start` up to and without `end`."""
        ...

    def close(self) -> None:
        """Give back what was opened."""
        ...


class _Session(msgspec.Struct):
    """What one session said around the wait. `began` and `most`: slots offered when the wait began, and at most in it."""

    name: str
    first: int
    last: int
    stamp: int
    worker: str = ""
    tasks: list[str] | None = None
    queues: list[QueueOffer] = []
    lease_ms: int = 0
    began: int = 0
    most: int = 0
    is_leaving: bool = False

    def hear(self, record: RawRecord, head: ReportHead, wait: Wait) -> None:
        """A report of it."""
        self.last, self.stamp = record.offset, record.stamp
        if head.full is not None:
            self.worker, self.tasks = head.full.worker[:NAME_CHARS_MAX], head.full.tasks
            self.queues, self.lease_ms = head.full.queues, head.full.lease_ms
        if head.pulse is not None:
            offer = 0 if head.pulse.is_quiet else head.pulse.offer
            self.is_leaving = head.pulse.is_leaving
            if record.stamp <= wait.from_at:
                self.began = self.most = offer
            self.most = max(self.most, offer)

    def is_there(self, wait: Wait) -> bool:
        """Whether its lease reached into the wait."""
        return self.stamp + self.lease_ms >= wait.from_at

    def fits(self, wait: Wait) -> bool:
        """Whether it could run what waited."""
        return self.tasks is not None and wait.task in self.tasks and wait.queue in self._queue_names()

    def reason(self, partition: int, wait: Wait) -> Reason:
        """What it could have done."""
        who = f"{self.name} ({self.worker})" if self.worker else self.name
        place = f"(worker-reports {partition}:{self.first} to {partition}:{self.last})"
        if self.fits(wait):
            text = (
                f"{who} was alive, knows the task {wait.task} and takes from the queue {wait.queue}: it offered "
                f"{self.began} slots here when the wait began, at most {self.most} until it ended"
            )
            leaving = "; it was leaving" if self.is_leaving else ""
            return Reason(code="worker_offered", text=f"{text}{leaving} {place}", at=self.stamp)
        if self.tasks is None:
            what = "did not say what it can run"
        elif wait.task not in self.tasks:
            what = f"does not know the task {wait.task}"
        else:
            what = f"does not take from the queue {wait.queue}"
        return Reason(code="worker_unfit", text=f"{who} was alive and {what} {place}", at=self.stamp)

    def _queue_names(self) -> set[str]:
        return {queue.name for queue in self.queues}


def offers_told(open_reports: Callable[[], Reports] | None, partition: int, wait: Wait) -> list[Reason]:
    """Sessions that were alive while something waited on a partition and what they offered there, the fit ones first.

    `open_reports` is None where only files are at hand. What cannot be told is said.
    """
    if open_reports is None:
        return [_untold("only files are at hand")]
    try:
        with closing(open_reports()) as reports:
            return _told(reports, partition, wait)
    except (KafkaError, SettingsError) as error:
        return [_untold(f"it cannot be read ({type(error).__name__})")]


def _told(reports: Reports, partition: int, wait: Wait) -> list[Reason]:
    start, _ = reports.bounds(partition)
    look_from = wait.from_at - LOOK_BACK_MS
    first = reports.offset_at(partition, look_from)
    end = reports.offset_at(partition, wait.until_at + 1)
    sessions: dict[str, _Session] = {}
    begins_at: int | None = None
    for record in reports.read(partition, first, end):
        begins_at = record.stamp if begins_at is None else begins_at
        head = read_head(record.value)
        if head is None:
            continue
        name = head.session[:NAME_CHARS_MAX]
        if name not in sessions and len(sessions) < SESSIONS_MAX:
            sessions[name] = _Session(name, record.offset, record.offset, record.stamp)
        if name in sessions:
            sessions[name].hear(record, head, wait)
    is_cut = first == start > 0
    if is_cut and (begins_at is None or begins_at > wait.from_at):
        since = "" if begins_at is None else f": what is kept begins at {format_instant(begins_at)}"
        return [_untold(f"of that time it is gone{since}")]
    found = _of_sessions(sessions.values(), partition, wait)
    if not found:
        text = (
            f"No worker's session reported to partition {partition} then "
            f"(worker-reports {partition}:{first} up to {partition}:{end})"
        )
        found = [Reason(code="no_session", text=text, at=wait.from_at)]
    if is_cut and begins_at is not None and begins_at > look_from:
        before = f"its reports before {format_instant(begins_at)} are gone: what sessions said only there is not told"
        found.append(_untold(before))
    return found


def _of_sessions(sessions: Iterable[_Session], partition: int, wait: Wait) -> list[Reason]:
    """What those that were there could have done, the fit ones first."""
    there = sorted(
        (one for one in sessions if one.is_there(wait)),
        key=lambda one: (not one.fits(wait), -one.most, one.name),
    )
    found = [one.reason(partition, wait) for one in there[:NAMED_MAX]]
    if len(there) > NAMED_MAX:
        text = f"{len(there) - NAMED_MAX} further sessions were alive"
        found.append(Reason(code="workers_more", text=text, at=wait.from_at))
    return found


def _untold(why: str) -> Reason:
    text = f"What workers offered then, only worker-reports tells, and {why}"
    return Reason(code="reports_untold", text=text)
