"""Whether a partition's log is as it was written.

Proof of a record is a hash over it that somebody wrote down later: every frame that continues the chain, and every copy
of state with the chain's head, proves all records before it. What lies behind the last proof must explain itself: a
valid frame, a frame ahead of the clock, or one that lost a race, that is, declares an earlier offset on the very head
that the chain has there. Anything else is a record that was changed, dropped, moved or added, and since then no frame
continues the chain. Where the first such record's own declared head is continued by the next one, it is intact and the
change lies before it.
"""

from __future__ import annotations

import tempfile
from typing import Final, NamedTuple

from minutebook.errors import BrokenFrameError, DecodeError
from minutebook.log.port import RawRecord
from minutebook.log.reader import FrameReader, Taken, next_head
from minutebook.wire.frames import Frame, decode_frame

_HEAD_BYTES: Final = 32


class Fault(NamedTuple):
    """What is wrong, and where: at `offset`, or, as nothing can say more exactly, from `first` to `last`."""

    offset: int
    first: int
    last: int
    what: str


class _Suspect(NamedTuple):
    """A record behind the last proof that nothing explains."""

    offset: int
    what: str
    is_severed: bool


class Chain:
    """Takes the records of one partition in order and keeps account of what is proven."""

    def __init__(self) -> None:
        self.reader = FrameReader()
        self.frames = 0
        self.void = 0
        self.broken: list[Fault] = []
        self._proven = -1
        self._suspect: _Suspect | None = None
        self._claimed: bytes | None = None
        self._is_claim_kept: bool | None = None
        self._heads = tempfile.TemporaryFile()

    def close(self) -> None:
        """Give the scratch file back."""
        self._heads.close()

    def take(self, record: RawRecord) -> Frame | None:
        """The frame if the record is a valid one. Raises LogGapError where a record before it is missing."""
        before = self.reader.head
        try:
            taken = self.reader.take(record)
        except BrokenFrameError as error:
            self._keep(before)
            self.void += 1
            self.broken.append(Fault(record.offset, record.offset, record.offset, f"a frame that is damaged: {error}"))
            self._continue_claim(record, None)
            return None
        self._keep(before)
        if isinstance(taken, Taken):
            self.frames += 1
            self.prove(record.offset - 1)
            return taken.frame
        self.void += 1
        self._weigh(record, before, taken.reason)
        return None

    def agrees(self, head: bytes) -> bool:
        """Whether the chain's head after the last record is `head`, as somebody wrote it down; if so it proves all."""
        if head == self.reader.head:
            self.prove(self.reader.position)
            return True
        if self._claimed is not None and self._is_claim_kept is None:
            self._is_claim_kept = head == self._claimed
        return False

    def prove(self, position: int) -> None:
        """Everything up to `position` is as it was written."""
        self._proven = max(self._proven, position)
        if self._suspect is not None and self._suspect.offset <= position:
            self._suspect = None
            self._claimed = self._is_claim_kept = None

    def unproven(self) -> int:
        """The first record that nothing proves."""
        return self._proven + 1

    def fault(self) -> Fault | None:
        """The first thing that does not fit, None if everything does."""
        found = self.broken[:1]
        if self._suspect is not None:
            found.append(self._locate(self._suspect))
        return min(found, default=None)

    def _locate(self, suspect: _Suspect) -> Fault:
        first, last = min(self.unproven(), suspect.offset), suspect.offset
        if not suspect.is_severed:
            return Fault(last, first, last, suspect.what)
        what = f"the frame at {suspect.offset} is {suspect.what}, and so is every one behind it"
        if self._is_claim_kept is False:
            return Fault(last, last, last, f"this record was changed: {what}")
        if self._is_claim_kept:
            last = max(first, suspect.offset - 1)
        return Fault(first, first, last, f"this record was changed: {what}")

    # -- void records

    def _keep(self, head: bytes) -> None:
        self._heads.write(head)

    def _head_before(self, offset: int) -> bytes:
        self._heads.seek(offset * _HEAD_BYTES)
        found = self._heads.read(_HEAD_BYTES)
        self._heads.seek(0, 2)
        return found

    def _weigh(self, record: RawRecord, before: bytes, reason: str) -> None:
        frame = _frame(record.value)
        self._continue_claim(record, frame)
        if frame is None:
            self._suspects(record.offset, reason, is_severed=False)
        elif frame.head == before:
            self.prove(record.offset - 1)
            if frame.offset != record.offset:
                self._suspects(record.offset, reason, is_severed=False)
        elif frame.offset == record.offset:
            self._suspects(record.offset, reason, is_severed=True)
            if self._claimed is None:
                self._claimed = next_head(frame.head, record)
        elif not self._lost_a_race(frame, record.offset):
            self._suspects(record.offset, reason, is_severed=False)

    def _lost_a_race(self, frame: Frame, offset: int) -> bool:
        return 0 <= frame.offset < offset and self._head_before(frame.offset) == frame.head

    def _suspects(self, offset: int, what: str, *, is_severed: bool) -> None:
        if self._suspect is None:
            self._suspect = _Suspect(offset, what, is_severed)

    def _continue_claim(self, record: RawRecord, frame: Frame | None) -> None:
        """Follow the chain on from the head that the first severed frame declares."""
        if self._claimed is None:
            return
        if frame is not None and frame.offset == record.offset and self._is_claim_kept is None:
            self._is_claim_kept = frame.head == self._claimed
        self._claimed = next_head(self._claimed, record)


def _frame(value: bytes | None) -> Frame | None:
    try:
        return decode_frame(value)
    except DecodeError:
        return None
