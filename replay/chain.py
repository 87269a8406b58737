"""Whether a partition's log is as it was written.

Proof of a record is a hash over it that somebody wrote down later: every frame that continues the chain, and every copy
of state with the chain's head, proves all records before it. What lies behind the last proof must explain itself: a
valid frame, a frame ahead of the clock, or one that lost a race, that is, declares an earlier offset on the very head
that the chain has there. Anything else is a record that was changed, dropped, moved or added, and since then no frame
continues the chain. Where the first such record's own declared head is continued by the next one, it is intact and the
change lies before it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from minutebook.errors import BrokenFrameError, DecodeError
from minutebook.log.port import RawRecord
from minutebook.log.reader import FrameReader, Taken, next_head
from minutebook.wire.frames import Frame, decode_frame
from replay.audit_store import KeptHeads

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


class ChainState(msgspec.Struct, kw_only=True):
    """How a chain stands after a record: `position` and the heads around it, valid and void records so far, and what is not
    explained yet.
    """

    start: int
    position: int
    head: bytes
    head_before: bytes
    frames: int = 0
    void: int = 0
    broken: Fault | None = None
    proven: int = -1
    suspects: list[_Suspect] = []
    claimant: int = -1
    claimed: bytes | None = None
    is_claim_kept: bool | None = None


def chain_from(start: int, head_before: bytes) -> ChainState:
    """How a chain stands before the record at `start`, the first one."""
    return ChainState(
        start=start, position=start - 1, head=head_before, head_before=head_before, proven=start - 1
    )


class Chain:
    """Takes the records of one partition in order, from where `state` stands, and keeps account of what is proven. `heads` is
    the file for the heads before each record.
    """

    def __init__(self, state: ChainState, heads: Path) -> None:
        """Raises SettingsError where `heads` does not hold those of `state`."""
        self.reader = FrameReader(state.position, state.head)
        self.reader.head_before = state.head_before
        self.frames = state.frames
        self.void = state.void
        self._broken = state.broken
        self._start = state.start
        self._proven = state.proven
        self._suspects = list(state.suspects)
        self._claimant = state.claimant
        self._claimed = state.claimed
        self._is_claim_kept = state.is_claim_kept
        self._heads = KeptHeads(heads, state.start, state.position + 1 - state.start)

    def state(self) -> ChainState:
        """How it stands; the file of heads is as far."""
        self._heads.flush()
        return ChainState(
            start=self._start,
            position=self.reader.position,
            head=self.reader.head,
            head_before=self.reader.head_before,
            frames=self.frames,
            void=self.void,
            broken=self._broken,
            proven=self._proven,
            suspects=self._suspects,
            claimant=self._claimant,
            claimed=self._claimed,
            is_claim_kept=self._is_claim_kept,
        )

    def close(self) -> None:
        """Give the file of heads free."""
        self._heads.close()

    def take(self, record: RawRecord) -> Frame | None:
        """The frame if the record is a valid one. Raises LogGapError where a record before it is missing."""
        before = self.reader.head
        try:
            taken = self.reader.take(record)
        except BrokenFrameError as error:
            self._heads.add(before)
            self.void += 1
            if self._broken is None:
                what = f"a frame that is damaged: {error}"
                self._broken = Fault(record.offset, record.offset, record.offset, what)
            self._continue_claim(record, None)
            return None
        self._heads.add(before)
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

    def agreed(self, position: int, head: bytes) -> bool:
        """Whether the chain's head after the record at `position`, one before the last, was `head`; if so it proves all
        through that record.
        """
        is_same = self._heads.before(position + 1) == head
        if is_same:
            self.prove(position)
        return is_same

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
        elif self._start <= frame.offset < record.offset and self._heads.before(frame.offset) == frame.head:
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
