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
from minutebook.log.reader import HEAD_BEFORE_ALL, FrameReader, Taken, next_head
from minutebook.wire.frames import Frame, decode_frame

_HEAD_BYTES: Final = 32
_SUSPECTS_MAX: Final = 1_000


class Fault(NamedTuple):
    """What is wrong, and where: at `offset`, or, as nothing can say more exactly, from `first` to `last`."""

    offset: int
    first: int
    last: int
    what: str


class _Suspect(NamedTuple):
    """A record behind the last proof that nothing explains. `is_severed`: a frame in its place, on another head."""

    offset: int
    what: str
    is_severed: bool


class Chain:
    """Takes the records of one partition in order, from `start` on, and keeps account of what is proven."""

    def __init__(self, start: int = 0, head_before: bytes = HEAD_BEFORE_ALL) -> None:
        self.reader = FrameReader(start - 1, head_before)
        self.frames = 0
        self.void = 0
        self._broken: Fault | None = None
        self._start = start
        self._proven = start - 1
        self._suspects: list[_Suspect] = []
        self._claimant = -1
        self._claimed: bytes | None = None
        self._is_claim_kept: bool | None = None
        self._heads = tempfile.TemporaryFile()  # noqa: SIM115  # closed by close

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
            if self._broken is None:
                what = f"a frame that is damaged: {error}"
                self._broken = Fault(record.offset, record.offset, record.offset, what)
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
        if self._suspects:
            self._suspects = [suspect for suspect in self._suspects if suspect.offset > position]

    def unproven(self) -> int:
        """The first record that nothing proves."""
        return self._proven + 1

    def fault(self) -> Fault | None:
        """The first thing that does not fit, None if everything does."""
        suspect = self._suspects[0] if self._suspects else None
        broken = self._broken
        if suspect is None or (broken is not None and broken.offset <= suspect.offset):
            return broken
        return self._locate(suspect)

    def _locate(self, suspect: _Suspect) -> Fault:
        """Where the change must lie, given that it is one."""
        first = min(self.unproven(), suspect.offset)
        severed = next((one.offset for one in self._suspects if one.is_severed), None)
        if severed is None:
            return Fault(suspect.offset, first, suspect.offset, suspect.what)
        is_intact = self._is_claim_kept if self._claimant == severed else None
        last = max(first, severed - 1) if is_intact else severed
        if not suspect.is_severed:
            return Fault(suspect.offset, first, last, suspect.what)
        if is_intact is False:
            first = severed
        what = f"changed: the frame at {severed} is {suspect.what}, and no frame behind it is valid"
        return Fault(first, first, last, what)

    # -- void records

    def _keep(self, head: bytes) -> None:
        self._heads.write(head)

    def _head_before(self, offset: int) -> bytes:
        self._heads.seek((offset - self._start) * _HEAD_BYTES)
        found = self._heads.read(_HEAD_BYTES)
        self._heads.seek(0, 2)
        return found

    def _weigh(self, record: RawRecord, before: bytes, reason: str) -> None:
        """A void record proves what is before it, explains itself, or is suspect."""
        frame = _frame(record.value)
        self._continue_claim(record, frame)
        if frame is None:
            self._suspect(_Suspect(record.offset, reason, False))
        elif frame.head == before:
            self.prove(record.offset - 1)
            if frame.offset != record.offset:
                self._suspect(_Suspect(record.offset, reason, False))
        elif frame.offset == record.offset:
            self._claim(frame, record)
            self._suspect(_Suspect(record.offset, reason, True))
        elif self._start <= frame.offset < record.offset and self._head_before(frame.offset) == frame.head:
            self.prove(frame.offset - 1)
        else:
            self._suspect(_Suspect(record.offset, reason, False))

    def _suspect(self, suspect: _Suspect) -> None:
        """Keep it; of too many the last one stands for those in between."""
        if len(self._suspects) >= _SUSPECTS_MAX:
            self._suspects.pop()
        self._suspects.append(suspect)

    def _claim(self, frame: Frame, record: RawRecord) -> None:
        """Follow the chain on from the head that the first severed frame declares."""
        if not any(suspect.is_severed for suspect in self._suspects):
            self._claimant = record.offset
            self._claimed = next_head(frame.head, record)
            self._is_claim_kept = None

    def _continue_claim(self, record: RawRecord, frame: Frame | None) -> None:
        """Ask the next frame whether the severed one before it is as its writer made it."""
        if self._claimed is None or self._is_claim_kept is not None:
            return
        if frame is not None and frame.offset == record.offset:
            self._is_claim_kept = frame.head == self._claimed
        self._claimed = next_head(self._claimed, record)


def _frame(value: bytes | None) -> Frame | None:
    try:
        return decode_frame(value)
    except DecodeError:
        return None
