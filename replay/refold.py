"""A partition folded anew, as its owner keeps it and as the API keeps it, and compared with copies of theirs."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple

from minutebook.domain import book as state
from minutebook.domain import view_rows as view
from minutebook.domain.book import Book
from minutebook.domain.rows import rows_of
from minutebook.domain.view import PartitionView
from minutebook.domain.view_retention import Retention
from minutebook.log.apply import fold_events, move_cursor
from minutebook.log.checkpoint import Copy, Part
from minutebook.log.reader import FrameReader
from minutebook.store.port import Rows
from minutebook.store.rocks import RocksRows
from minutebook.wire.frames import Frame
from replay.frames import AuditReader, records_taken
from replay.reading import Advance, Log, Until

_COMMIT_ROWS: Final = 8_000
"""Rows of events folded before what they changed leaves memory."""
_CACHE_BYTES: Final = 16 << 20
_DEFAULT: Final = Retention()


class _Kind(NamedTuple):
    """How one kind of state is opened and compared."""

    families: tuple[str, ...]
    compared: tuple[str, ...]
    digest: Callable[[Rows, int], bytes]
    span: Callable[[int], tuple[bytes, bytes | None]]


def _span_of_partition(partition: int) -> tuple[bytes, bytes]:
    return view.partition_prefix(partition), view.partition_prefix(partition + 1)


_KINDS: Final[dict[Part, _Kind]] = {
    "streams": _Kind(
        state.FAMILIES, state.FAMILIES, lambda rows, _: state.digest(rows), lambda _: (b"", None)
    ),
    "view": _Kind(view.FAMILIES, view.FAMILIES[1:], view.digest, _span_of_partition),
}


MakeRows = Callable[[Path, tuple[str, ...]], Rows]
"""An empty store in a folder that is not there yet, with these families."""


def on_disk(folder: Path, families: tuple[str, ...]) -> Rows:
    """A store that may outgrow memory."""
    return RocksRows(folder, families, cache_bytes=_CACHE_BYTES)


class Refold:
    """Owner's state and view of one partition, over stores of their own in `folder`."""

    def __init__(
        self,
        folder: Path,
        partition: int,
        make_rows: MakeRows = on_disk,
        retention: Retention = _DEFAULT,
        *,
        has_view: bool = True,
        after_commit: Callable[[], None] = lambda: None,
    ) -> None:
        """Without `has_view` only the owner's state is folded. `after_commit` is called once what is folded is written."""
        self.partition = partition
        self._has_view = has_view
        self._after_commit = after_commit
        self._state = make_rows(folder / "state", state.FAMILIES)
        self._view = make_rows(folder / "view", view.FAMILIES)
        self.book = Book(self._state)
        self.view = PartitionView(self._view, partition, retention=retention)
        self._folded = 0

    def take(self, reader: FrameReader, frame: Frame | None) -> int:
        """Fold the frame that `reader` just took; None = the record was void. Not committed yet. How many rows it has.

        Raises BrokenFrameError, or whatever the fold of senseless data raises: nothing more can be folded then.
        """
        rows = 0
        if frame is not None:
            fold_events(self.book, frame)
            if self._has_view:
                self.view.fold(frame.events, frame.now, frame.offset)
                self.view.answered.clear()
                self.view.changed_keys.clear()
            rows = sum(map(rows_of, frame.events))
        self._folded += rows
        move_cursor(self.book, reader, frame)
        return rows

    def is_full(self) -> bool:
        """Whether what is not committed should leave memory."""
        return self._folded >= _COMMIT_ROWS

    def commit(self) -> None:
        """Store what is folded so far."""
        self._folded = 0
        self.book.commit()
        if self._has_view:
            self._view.write(*self.view.drain())
        self._after_commit()

    def rows(self, part: Part) -> Rows:
        """What is folded so far, as stored."""
        self.commit()
        return self._state if part == "streams" else self._view

    def digest(self, part: Part) -> bytes:
        """Digest of what is folded so far."""
        return _KINDS[part].digest(self.rows(part), self.partition)

    def difference(self, part: Part, copy: Copy) -> str:
        """What is not the same in a copy made at this very position; empty if nothing is."""
        kind = _KINDS[part]
        if not Path(copy.path).is_dir():
            return f"its folder {copy.path} is not there"
        try:
            rows = RocksRows(Path(copy.path), kind.families, cache_bytes=_CACHE_BYTES, is_read_only=True)
        except Exception as error:  # rocksdict raises bare Exception for damaged files
            return f"its folder {copy.path} cannot be opened: {error}"
        try:
            if kind.digest(rows, self.partition) == self.digest(part):
                return ""
            return _first_difference(self.rows(part), rows, kind, self.partition)
        except Exception as error:  # as above: a damaged block shows only when it is read
            return f"its folder {copy.path} cannot be read: {error}"
        finally:
            rows.close()

    def keep(self, part: Part, folder: Path) -> None:
        """A copy of what is folded so far in `folder`, which must not exist yet."""
        self.rows(part).checkpoint(str(folder))

    def close(self) -> None:
        """Give the stores back."""
        self._state.close()
        self._view.close()


def folding(log: Log, refold: Refold, reader: AuditReader, until: Until, advance: Advance) -> Iterator[Frame]:
    """Folds a partition of `log` up to `until`, void records too; each valid frame once it is folded. `reader` is fresh, and
    tells afterwards how far it came. Raises LogError, KafkaError.
    """
    for frame in records_taken(log, refold.partition, reader, until, advance):
        refold.take(reader, frame)
        if refold.is_full():
            refold.commit()
        if frame is not None:
            yield frame


def _first_difference(folded: Rows, copied: Rows, kind: _Kind, partition: int) -> str:
    start, end = kind.span(partition)
    for family in kind.compared:
        both = _side_by_side(folded.scan(family, start, end), copied.scan(family, start, end))
        for key, ours, theirs in both:
            if ours != theirs:
                how = "is missing" if theirs is None else "is too much" if ours is None else "is another"
                return f"row {key!r} of {family} {how}"
    return "its digest is another"


def _side_by_side(
    folded: Iterator[tuple[bytes, bytes]], copied: Iterator[tuple[bytes, bytes]]
) -> Iterator[tuple[bytes, bytes | None, bytes | None]]:
    """(key, folded value, copied value), None where one side has no such row."""
    rows = heapq.merge(((key, 0, value) for key, value in folded), ((key, 1, value) for key, value in copied))
    for key, group in groupby(rows, key=itemgetter(0)):
        sides = {side: value for _, side, value in group}
        yield key, sides.get(0), sides.get(1)
