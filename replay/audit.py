"""The audit of one partition on its way: chain, fold, permits, comparisons, and how far it came.

It is saved record by record as a whole, so an audit that is gone on with says what one from the first record on would say;
what it took over instead of reading it again, it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from minutebook.domain import events as facts
from minutebook.domain.view_retention import Retention
from minutebook.errors import LogGapError, SettingsError
from minutebook.log.checkpoint import Copy, Part
from minutebook.log.port import RawRecord
from minutebook.log.reader import CLOCK_BOUND_MS, next_head
from minutebook.wire.frames import FORMAT_VERSION, Frame
from replay.audit_store import PROGRESS, AuditStore, write_rows
from replay.chain import Chain, ChainState, Fault, chain_from
from replay.heads import Head
from replay.permits import FAMILY, PermitAudit
from replay.reading import Log, beginning
from replay.refold import MakeRows, Refold, on_disk
from replay.report import (
    DIFFERENT,
    EQUAL,
    NO_COPY,
    NOT_ASKED,
    NOT_REACHED,
    PASSED,
    Finding,
    PartitionReport,
)

PARTS: Final[tuple[Part, ...]] = ("streams", "view")
_SAVE_AFTER: Final = 4_096
"""Records after which an audit is saved, however few rows they have."""
_VOIDS_MAX: Final = 20_000
"""Void records in a row after which nothing more is folded: the state names each of them."""
_WHOSE: Final[dict[Part, str]] = {"streams": "owner's state", "view": "view"}
_UNPAIRED: Final = "permits"
_KEPT: Final = "kept"


class Progress(msgspec.Struct, kw_only=True):
    """What is saved of an audit. `findings`: of the records alone; `differences`: of each copy and of the head that was kept.
    `stamp`: the latest of its records (ms). `folded_through`: its last frame that was folded. `view_retention`: how long its
    view keeps what is over, None = no view is folded.
    """

    chain: ChainState
    report: PartitionReport
    findings: list[Finding]
    differences: dict[str, Finding]
    permit_findings: list[Finding]
    log_id: str
    stamp: int
    now: int
    can_fold: bool
    folded_through: int
    view_retention: Retention | None
    copies: dict[Part, Copy]
    kept: Head | None


class Audit:
    """One partition of `log`, in a folder of its own, against `copies` and the head that somebody `kept`."""

    def __init__(
        self,
        log: Log,
        partition: int,
        folder: Path,
        copies: Mapping[Part, Copy],
        kept: Head | None,
        make_rows: MakeRows = on_disk,
    ) -> None:
        """Goes on where one that was saved in `folder` ended. Raises SettingsError where it cannot."""
        start, end = log.bounds(partition)
        self.findings: list[Finding] = []
        self._folder = folder
        self._log = log
        self._copies = copies
        self._kept = kept
        self._gap: Fault | None = None
        self._unsaved = 0
        self._store = AuditStore(folder / "rows", make_rows)
        try:
            saved = self._saved()
            if saved is None:
                saved = self._begun(partition, start, end)
            elif saved.report.start != start:
                raise SettingsError(
                    f"the audit in {folder} is of a log that begins at offset {saved.report.start}, "
                    f"this one at {start}: choose a new folder"
                )
            self._open(saved, make_rows)
        except BaseException:
            self._store.close()
            raise
        self.report.end = end
        self.report.taken_over = 0
        self.report.unchecked = []

    def _saved(self) -> Progress | None:
        found = self._store.section("audit").get(PROGRESS, b"")
        return None if found is None else msgspec.msgpack.decode(found, type=Progress)

    def _begun(self, partition: int, start: int, end: int) -> Progress:
        view = self._copies.get("view")
        return Progress(
            chain=chain_from(*beginning(self._log, partition)),
            report=PartitionReport(partition=partition, start=start, end=end),
            findings=[],
            differences={},
            permit_findings=[],
            log_id="",
            stamp=-1,
            now=0,
            can_fold=start == 0,
            folded_through=-1,
            view_retention=None if view is None else view.retention or Retention(),
            copies={},
            kept=None,
        )

    def _open(self, saved: Progress, make_rows: MakeRows) -> None:
        self._before = saved
        self.report = saved.report
        self.findings = saved.findings
        self._differences = saved.differences
        self.log_id = saved.log_id
        self.stamp = saved.stamp
        self._now = saved.now
        self._can_fold = saved.can_fold
        self.folded_through = saved.folded_through
        self._view_retention = saved.view_retention
        partition = saved.report.partition
        self._permits = PermitAudit(partition, self._store.section("audit"))
        self._permits.findings = saved.permit_findings
        self._refold = Refold(
            self._folder,
            partition,
            lambda folder, _: self._store.section(folder.name),
            saved.view_retention or Retention(),
            has_view=saved.view_retention is not None,
            after_commit=self._note,
        )
        self._chain = Chain(saved.chain, self._folder / "heads")

    # -- records

    @property
    def position(self) -> int:
        """The last record taken."""
        return self._chain.reader.position

    def can_begin(self) -> bool:
        """Whether the log is the one that was read before: its record at the saved position must have the saved hash. What is
        not the same is a finding, and nothing can be said of what follows.
        """
        report, reader = self.report, self._chain.reader
        if report.records:
            at = reader.position
            found = (
                next(iter(self._log.read(report.partition, at, at + 1)), None) if at < report.end else None
            )
            if found is None:
                self._gap = Fault(
                    min(report.end, at), min(report.end, at), at, "records that were audited before are gone"
                )
            elif found.offset != at or next_head(reader.head_before, found) != reader.head:
                what = "another record lies here than the one that was audited before"
                self._gap = Fault(at, report.start, at, what)
        self._settle_before()
        if self._gap is not None:
            return False
        report.taken_over = report.records
        self._compare()
        return True

    def take(self, record: RawRecord) -> bool:
        """One record more. False where nothing can be said of what follows."""
        try:
            frame = self._chain.take(record)
        except LogGapError:
            first, last = self.position + 1, max(self.position + 1, record.offset - 1)
            self._gap = Fault(first, first, last, missing(last - first + 1))
            return False
        self.stamp = max(self.stamp, record.stamp)
        self.report.records += 1
        self._unsaved += 1
        self._fold(frame)
        self._compare()
        if self._refold.is_full() or self._unsaved >= _SAVE_AFTER:
            self.save()
        return True

    def save(self) -> None:
        """Everything through the last record is stored, to go on from there."""
        self._refold.commit()

    def _note(self) -> None:
        """How far it is, beside what is folded."""
        self._unsaved = 0
        self.report.position = self.position
        progress = Progress(
            chain=self._chain.state(),
            report=self.report,
            findings=self.findings,
            differences=self._differences,
            permit_findings=self._permits.findings,
            log_id=self.log_id,
            stamp=self.stamp,
            now=self._now,
            can_fold=self._can_fold,
            folded_through=self.folded_through,
            view_retention=self._view_retention,
            copies=dict(self._copies),
            kept=self._kept,
        )
        encoded: dict[bytes, bytes | None] = {b"": msgspec.msgpack.encode(progress)}
        self._store.section("audit").write({PROGRESS: encoded, FAMILY: self._permits.pending()}, [])
        self._store.flush()

    def _fold(self, frame: Frame | None) -> None:
        if not self._can_fold:
            return
        try:
            self.report.rows += self._refold.take(self._chain.reader, frame)
            if frame is not None:
                self._check(frame)
                self._permits.take(frame, self._refold.book)
                self.folded_through = frame.offset
        except Exception as error:  # a frame that was changed can make the fold fail in any way
            self._can_fold = False
            self._refold.book.discard()
            self._find_at(self.position, f"a valid frame that cannot be folded: {error!r}")
            return
        if len(self._refold.book.cursor.voids) >= _VOIDS_MAX:
            self._can_fold = False
            what = f"{_VOIDS_MAX} void records in a row: nothing is folded from here on"
            self._find(Fault(self.position, self.folded_through + 1, self.position, what))

    def _check(self, frame: Frame) -> None:
        """What every valid frame must be beside its place in the chain."""
        self.report.events += len(frame.events)
        if frame.now < self._now:
            self._find_at(frame.offset, f"its time {frame.now} is before the frame's before it, {self._now}")
        self._now = max(self._now, frame.now)
        if self._chain.frames == 1:
            self._check_opening(frame)

    def _check_opening(self, frame: Frame) -> None:
        opened = next((event for event in frame.events if isinstance(event, facts.LogOpened)), None)
        if opened is None:
            self._find_at(frame.offset, "the first valid frame does not open the log")
            return
        self.log_id = opened.log_id
        if opened.partition != self.report.partition:
            self._find_at(frame.offset, f"this is the log of partition {opened.partition}")
        if (opened.format_version, opened.clock_bound_ms) != (FORMAT_VERSION, CLOCK_BOUND_MS):
            self._find_at(
                frame.offset,
                f"format {opened.format_version}, clock bound {opened.clock_bound_ms} ms: not ours",
            )

    # -- comparisons

    def _settle_before(self) -> None:
        """What is asked for of records that were taken before: as it was found then, or from the heads of each of them."""
        report, before = self.report, self._before
        for part in PARTS:
            copy = self._copies.get(part)
            if copy != before.copies.get(part) or self._outcome_of(part) == PASSED:
                self._outcome(part, NOT_ASKED)
                self._differences.pop(part, None)
            wanted = copy.retention or Retention() if part == "view" and copy is not None else None
            if copy is None or self._has_outcome(part) or not report.records:
                continue
            if copy.position < self.position:
                self._pass_by(part, f"it was made at {copy.position}")
            elif wanted not in (None, self._view_retention):
                self._pass_by(part, "no view was folded like that")
        if self._kept != before.kept:
            report.kept = NOT_ASKED
            self._differences.pop(_KEPT, None)
        if self._kept is None or report.kept != NOT_ASKED:
            return
        if self._kept.position < report.start:
            report.kept = NOT_REACHED
        elif self._kept.position < self.position:
            self._judge_head(self._chain.agreed(self._kept.position, bytes.fromhex(self._kept.head)))

    def _pass_by(self, part: Part, why: str) -> None:
        self._outcome(part, PASSED)
        self.report.unchecked.append(
            f"the copy of the {_WHOSE[part]} is not compared: {why}, and this audit goes on from one that stood at "
            f"{self.position}"
        )

    def _compare(self) -> None:
        """Compare with the copies made just here, and with the head that was kept here."""
        kept = self._kept
        if kept is not None and kept.position == self.position and self.report.kept == NOT_ASKED:
            self._judge_head(self._chain.agrees(bytes.fromhex(kept.head)))
        for part, copy in self._copies.items():
            if copy.position == self.position and not self._has_outcome(part):
                self._compare_copy(part, copy)

    def _judge_head(self, is_same: bool) -> None:
        assert self._kept is not None
        self.report.kept = EQUAL if is_same else DIFFERENT
        if not is_same:
            first, last = min(self._chain.unproven(), self._kept.position), self._kept.position
            what = f"the chain's head after {last} is another than the one that was kept"
            self._differ(_KEPT, Fault(first, first, last, what))

    def _compare_copy(self, part: Part, copy: Copy) -> None:
        if not self._chain.agrees(bytes.fromhex(copy.head)):
            first = self._chain.unproven()
            what = f"the chain's head after {copy.position} is another in the copy of the {_WHOSE[part]}"
            self._differ(part, Fault(first, first, copy.position, what))
            self._outcome(part, DIFFERENT)
            return
        difference = (
            self._refold.difference(part, copy) if self._can_fold else "it cannot be folded up to there"
        )
        self._outcome(part, DIFFERENT if difference else EQUAL)
        if difference:
            at, what = copy.position, f"the copy of the {_WHOSE[part]} made here differs: {difference}"
            self._differ(part, Fault(at, at, at, what))

    # -- the end

    def end_with(self, head: bytes) -> None:
        """The log says that the chain's head is `head` after its last record."""
        if head != self._chain.reader.head and self._gap is None:
            first, last = min(self._chain.unproven(), self.report.end - 1), self.report.end - 1
            self._gap = Fault(
                first, first, last, "the chain ends with another head than the files were exported with"
            )

    def finish(self, *, is_cut: bool, is_interrupted: bool, needs_copies: bool) -> None:
        """No record more. `is_cut`: by an end that the caller asked for; `is_interrupted`: before that."""
        report, chain = self.report, self._chain
        self.save()
        if self._can_fold and not is_interrupted:
            report.digest = self._refold.digest("streams").hex()
        write_rows(self._folder / _UNPAIRED, self._permits.left())
        is_cut = is_cut or is_interrupted
        for part in PARTS:
            self._settle(part, is_cut=is_cut, is_needed=needs_copies)
        self._settle_head(is_cut=is_cut)
        compared = [self._differences[name] for name in (*PARTS, _KEPT) if name in self._differences]
        self.findings = [*self.findings, *compared, *self._permits.findings]
        report.frames, report.void = chain.frames, chain.void
        report.position, report.head = chain.reader.position, chain.reader.head.hex()
        report.unproven_from = chain.unproven()
        report.is_interrupted = is_interrupted
        if report.start:
            report.unchecked.append(f"this stretch begins at offset {report.start}: nothing can be folded")
        fault = None if is_interrupted else chain.fault()
        for found in (self._gap, fault):
            if found is not None:
                self.findings.insert(0, _finding(report.partition, found))

    def _settle(self, part: Part, *, is_cut: bool, is_needed: bool) -> None:
        """The outcome of a comparison that never came."""
        report, copy = self.report, self._copies.get(part)
        if self._has_outcome(part):
            return
        if copy is None:
            if is_needed and report.end > report.start:
                self._outcome(part, NO_COPY)
                last, what = report.end - 1, f"there is no copy of the {_WHOSE[part]}"
                self._differ(part, Fault(last, last, last, what))
        elif is_cut:
            self._outcome(part, NOT_REACHED)
        else:
            self._outcome(part, DIFFERENT)
            first, last = self.position + 1, copy.position
            what = f"the log ends before, the copy of the {_WHOSE[part]} goes on"
            self._differ(part, Fault(first, first, last, what))

    def _settle_head(self, *, is_cut: bool) -> None:
        """The outcome of a comparison with a kept head that never came."""
        kept = self._kept
        if kept is None or self.report.kept != NOT_ASKED:
            return
        self.report.kept = NOT_REACHED if is_cut else DIFFERENT
        if not is_cut:
            first = self.position + 1
            what = "the log ends before, records up to the kept head are gone"
            self._differ(_KEPT, Fault(first, first, kept.position, what))

    def _has_outcome(self, part: Part) -> bool:
        return self._outcome_of(part) != NOT_ASKED

    def _outcome_of(self, part: Part) -> str:
        return self.report.state if part == "streams" else self.report.view

    def _outcome(self, part: Part, outcome: str) -> None:
        if part == "streams":
            self.report.state = outcome
        else:
            self.report.view = outcome

    def _differ(self, name: str, fault: Fault) -> None:
        """What came of one comparison: it counts for as long as that one is asked for."""
        self._differences[name] = _finding(self.report.partition, fault)

    def _find_at(self, offset: int, what: str) -> None:
        self._find(Fault(offset, offset, offset, what))

    def _find(self, fault: Fault) -> None:
        self.findings.append(_finding(self.report.partition, fault))

    def close(self) -> None:
        """Give everything back."""
        self._refold.close()
        self._chain.close()
        self._store.close()


def unpaired_in(folder: Path) -> Path:
    """The file of permits in the folder of an audit that is finished."""
    return folder / _UNPAIRED


def missing(count: int) -> str:
    """That so many records are not there."""
    return "1 record is missing" if count == 1 else f"{count} records are missing"


def _finding(partition: int, fault: Fault) -> Finding:
    return Finding(partition, fault.offset, fault.first, fault.last, fault.what)
