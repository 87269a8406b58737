"""Were limits kept? By the facts of all partitions: what a home grants is within the limit in force, what a partition uses was
granted to it, and what came back to a home had been given back before.

Within one partition the fold itself vouches for the rest: only a free permit can be bound to an attempt, and only one that
no attempt runs under can be given back. So each running interval lies inside its permit.

Each partition is read alone. What finds its counterpart there is forgotten; what does not is a row of a store, kept until
`unpaired` compares the rows of all partitions.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final, NamedTuple

import msgspec

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book, Family
from minutebook.domain.permit_folds import home_of
from minutebook.domain.permits import is_paused
from minutebook.store.port import Rows
from minutebook.wire.frames import Frame, placed
from replay.report import Finding

FAMILY: Final = "permits"

_RECEIVED: Final = b"\0"
_RETURNED: Final = b"\1"
_WHAT: Final = {
    _RECEIVED: "is used here, but was never granted to this partition",
    _RETURNED: "came back, but nobody had given it back",
}
_ABOUT_PERMITS: Final[frozenset[type]] = frozenset(
    (facts.PermitsGranted, facts.PermitsReceived, facts.PermitsReleased, facts.PermitsReturned)
)
_CAUSE: Final = b"\0"
_EFFECT: Final = b"\1"

Row = tuple[bytes, bytes]


class Half(msgspec.Struct, frozen=True, array_like=True):
    """One side of a pair. A cause: `partition` is the one that it is for, or comes from. An effect: read in `partition` at
    `offset`, and its cause must lie in `cause_partition` at `cause_offset`.
    """

    tenant: str
    limit: str
    permit: int
    partition: int
    offset: int = -1
    cause_partition: int = -1
    cause_offset: int = -1


_decode = msgspec.msgpack.Decoder(Half).decode


class PermitAudit:
    """Takes the frames of one partition in order, over the rows of `FAMILY`; `pending` is to be stored now and then."""

    def __init__(self, partition: int, rows: Rows) -> None:
        self.findings: list[Finding] = []
        self._partition = partition
        self._halves = Family(rows, FAMILY, Half)
        self._rows = rows

    def take(self, frame: Frame, book: Book) -> None:
        """A valid frame that has just been folded into `book`."""
        if _ABOUT_PERMITS.isdisjoint(map(type, frame.events)):
            return
        mail = (-1, -1)
        for event, token in placed(frame):
            match event:
                case facts.MailTaken():
                    mail = (event.sender, event.frame)
                case facts.PermitsGranted():
                    self._check_bounds(frame, book, event)
                    for permit, receiver in enumerate(event.partitions, token):
                        self._cause(_RECEIVED, Half(event.tenant, event.limit, permit, receiver))
                case facts.PermitsReceived():
                    self._effects(_RECEIVED, frame, event, mail)
                case facts.PermitsReleased():
                    for permit in event.permits:
                        self._cause(_RETURNED, Half(event.tenant, event.limit, permit, self._partition))
                case facts.PermitsReturned():
                    self._effects(_RETURNED, frame, event, mail)
                case _:
                    pass

    def pending(self) -> dict[bytes, bytes | None]:
        """Rows of `FAMILY` to be written with what they follow from; None deletes."""
        return self._halves.settle()

    def left(self) -> Iterator[Row]:
        """What found no counterpart here, as stored, in order of keys."""
        return self._rows.scan(FAMILY, b"", None)

    def _cause(self, kind: bytes, half: Half) -> None:
        self._halves.put(_key(kind, half) + _CAUSE, half)

    def _effects(
        self,
        kind: bytes,
        frame: Frame,
        event: facts.PermitsReceived | facts.PermitsReturned,
        mail: tuple[int, int],
    ) -> None:
        for permit in event.permits:
            half = Half(event.tenant, event.limit, permit, self._partition, frame.offset, *mail)
            key = _key(kind, half)
            cause = self._halves.get(key + _CAUSE)
            if cause is not None and _meet(kind, cause, half):
                self._halves.delete(key + _CAUSE)
            else:
                self._halves.put(key + _EFFECT + frame.offset.to_bytes(8), half)

    def _check_bounds(self, frame: Frame, book: Book, event: facts.PermitsGranted) -> None:
        limit = book.limit(event.tenant, event.limit)
        home = home_of(book, keys.limit_row(event.tenant, event.limit))
        name = (
            f"the limit {event.limit!r} of {event.tenant}" if event.limit else f"the limit of {event.tenant}"
        )
        if limit is None or is_paused(limit, frame.now):
            self._find(frame.offset, f"permits granted of {name}, which is paused or not there")
            return
        if 0 <= limit.concurrency < home.in_use:
            what = f"{home.in_use} permits of {name} are out, it lets {limit.concurrency}"
            self._find(frame.offset, what)
        recent = sum(count for _, count in home.recent)
        if 0 <= limit.rate_count < recent:
            what = f"{recent} permits of {name} granted within {limit.rate_period_ms} ms, it lets {limit.rate_count}"
            self._find(frame.offset, what)

    def _find(self, offset: int, what: str) -> None:
        self.findings.append(Finding(self._partition, offset, offset, offset, what))


class Unjudged(NamedTuple):
    """An effect in `partition` whose cause lies in `cause_partition`, behind what was read of it."""

    partition: int
    cause_partition: int


def unpaired(left: Iterable[Iterable[Row]], read: Mapping[int, int]) -> Iterator[Finding | Unjudged]:
    """Effects without a cause in what is left of all partitions. One whose cause lies behind what was read of its partition,
    by partition the offset of the last valid frame in `read`, is not judged.
    """
    rows = ((key[:1], _decode(value)) for key, value in heapq.merge(*left))
    for (kind, *_), pair in groupby(
        rows, key=lambda row: (row[0], row[1].tenant, row[1].limit, row[1].permit)
    ):
        halves = [half for _, half in pair]
        causes = [half for half in halves if half.offset < 0]
        for effect in (half for half in halves if half.offset >= 0):
            cause = next((cause for cause in causes if _meet(kind, cause, effect)), None)
            if cause is not None:
                causes.remove(cause)
            elif effect.cause_offset <= read.get(effect.cause_partition, -1):
                what = f"permit {effect.permit} of limit {effect.limit!r} {_WHAT[kind]}"
                yield Finding(effect.partition, effect.offset, effect.offset, effect.offset, what)
            else:
                yield Unjudged(effect.partition, effect.cause_partition)


def _meet(kind: bytes, cause: Half, effect: Half) -> bool:
    """Granted to where it is used; given back by who sent it, or here, where nobody did."""
    if kind == _RECEIVED or effect.cause_partition < 0:
        return cause.partition == effect.partition
    return cause.partition == effect.cause_partition


def _key(kind: bytes, half: Half) -> bytes:
    return kind + keys.permit_row(keys.limit_row(half.tenant, half.limit), half.permit)
