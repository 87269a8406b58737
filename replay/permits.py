"""Were limits kept? By the facts of all partitions: what a home grants is within the limit in force, what a partition uses was
granted to it, and what came back to a home had been given back before.

Within one partition the fold itself vouches for the rest: only a free permit can be bound to an attempt, and only one that
no attempt runs under can be given back. So each running interval lies inside its permit.
"""

from __future__ import annotations

from typing import NamedTuple

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.permit_folds import home_of
from minutebook.domain.permits import is_paused
from minutebook.wire.frames import Frame, placed
from replay.report import Finding

Permit = tuple[str, str, int]
"""(tenant, limit, permit)."""


class _Place(NamedTuple):
    """Where something was read, and where its cause must lie: a partition and the offset of a frame."""

    partition: int
    offset: int
    cause_partition: int
    cause_offset: int


class _Pairs:
    """Causes and effects in any order; those that have met are forgotten."""

    def __init__(self) -> None:
        self._causes: dict[Permit, int] = {}
        self.effects: dict[Permit, _Place] = {}

    def cause(self, permit: Permit, partition: int) -> None:
        """What is for `partition`, or comes from there."""
        place = self.effects.get(permit)
        if place is not None and partition in (place.partition, place.cause_partition):
            del self.effects[permit]
        else:
            self._causes[permit] = partition

    def effect(self, permit: Permit, place: _Place) -> None:
        """What must have its cause."""
        if self._causes.get(permit) in (place.partition, place.cause_partition):
            del self._causes[permit]
        else:
            self.effects[permit] = place


class PermitAudit:
    """Takes the frames of all partitions that are audited, each partition's in order; then says what is wrong."""

    def __init__(self) -> None:
        self._findings: list[Finding] = []
        self._read: dict[int, int] = {}
        self._received = _Pairs()
        self._returned = _Pairs()

    def take(self, partition: int, frame: Frame, book: Book) -> None:
        """A valid frame that has just been folded into `book`."""
        self._read[partition] = frame.offset
        mail = (-1, -1)
        for event, token in placed(frame):
            match event:
                case facts.MailTaken():
                    mail = (event.sender, event.frame)
                case facts.PermitsGranted():
                    self._check_bounds(partition, frame, book, event)
                    for permit, receiver in enumerate(event.partitions, token):
                        self._received.cause((event.tenant, event.limit, permit), receiver)
                case facts.PermitsReceived():
                    place = _Place(partition, frame.offset, *mail)
                    for permit in event.permits:
                        self._received.effect((event.tenant, event.limit, permit), place)
                case facts.PermitsReleased():
                    for permit in event.permits:
                        self._returned.cause((event.tenant, event.limit, permit), partition)
                case facts.PermitsReturned():
                    place = _Place(partition, frame.offset, *mail)
                    for permit in event.permits:
                        self._returned.effect((event.tenant, event.limit, permit), place)
                case _:
                    pass

    def _check_bounds(self, partition: int, frame: Frame, book: Book, event: facts.PermitsGranted) -> None:
        limit = book.limit(event.tenant, event.limit)
        home = home_of(book, keys.limit_row(event.tenant, event.limit))
        name = (
            f"the limit {event.limit!r} of {event.tenant}" if event.limit else f"the limit of {event.tenant}"
        )
        if limit is None or is_paused(limit, frame.now):
            self._find(partition, frame.offset, f"permits granted of {name}, which is paused or not there")
            return
        if 0 <= limit.concurrency < home.in_use:
            what = f"{home.in_use} permits of {name} are out, it lets {limit.concurrency}"
            self._find(partition, frame.offset, what)
        recent = sum(count for _, count in home.recent)
        if 0 <= limit.rate_count < recent:
            what = f"{recent} permits of {name} granted within {limit.rate_period_ms} ms, it lets {limit.rate_count}"
            self._find(partition, frame.offset, what)

    def _find(self, partition: int, offset: int, what: str) -> None:
        self._findings.append(Finding(partition, offset, offset, offset, what))

    def findings(self) -> list[Finding]:
        """What is wrong. An effect whose cause lies behind what was read of its partition is not judged."""
        for pairs, what in (
            (self._received, "is used here, but was never granted to this partition"),
            (self._returned, "came back, but nobody had given it back"),
        ):
            for (_, limit, permit), place in pairs.effects.items():
                if place.cause_offset <= self._read.get(place.cause_partition, -1):
                    self._find(place.partition, place.offset, f"permit {permit} of limit {limit!r} {what}")
        return self._findings
