"""Is the log what it was, and is what owners and API believe what it says?

Reads every record of a partition once: validity, clock and chain (`chain`), folds its valid frames anew (`refold`), and
stops at the position of each copy to compare.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from minutebook.domain import events as facts
from minutebook.domain.view_retention import Retention
from minutebook.errors import LogGapError
from minutebook.log.checkpoint import Copy, Part, newest
from minutebook.log.port import RawRecord
from minutebook.log.reader import CLOCK_BOUND_MS
from minutebook.wire.frames import FORMAT_VERSION, Frame
from replay.chain import Chain, Fault
from replay.heads import Head, Heads
from replay.permits import PermitAudit
from replay.reading import TO_THE_END, Advance, Log, Until, beginning, unheard
from replay.refold import MakeRows, Refold, on_disk
from replay.report import DIFFERENT, EQUAL, NO_COPY, NOT_ASKED, NOT_REACHED, Finding, PartitionReport, Report

Copies = Mapping[Part, Mapping[int, Copy]]


def copies_in(checkpoint_dir: Path) -> Copies:
    """The newest copies in a checkpoint folder, by part and partition. Raises SettingsError."""
    return {part: newest(checkpoint_dir, part) for part in ("streams", "view")}


def verify(
    log: Log,
    partitions: list[int],
    copies: Copies | None = None,
    until: Until = TO_THE_END,
    advance: Advance = unheard,
    make_rows: MakeRows = on_disk,
    kept: Heads | None = None,
) -> Report:
    """Audit `partitions` of `log` against `copies`; without copies the log alone. Folds over stores of `make_rows`.

    With copies given, each partition that holds a record needs one of its owner's state and one of the view. With `kept`
    heads, nothing up to them may have changed.
    Raises KafkaError where the log cannot be reached.
    """
    permits = PermitAudit()
    audits = [
        _verify_one(log, partition, copies, until, advance, make_rows, permits, kept)
        for partition in partitions
    ]
    findings = [finding for audit in audits for finding in audit.findings] + permits.findings()
    log_ids = sorted({audit.log_id for audit in audits if audit.log_id})
    if kept is not None and log_ids and kept.log_id not in ("", *log_ids):
        findings.append(
            Finding(partitions[0], 0, 0, 0, f"the heads that were kept are of the log {kept.log_id}")
        )
    if len(log_ids) > 1:
        findings.append(
            Finding(partitions[0], 0, 0, 0, f"partitions of different logs: {', '.join(log_ids)}")
        )
    return Report(
        ok=not findings,
        topic=log.topic,
        log_id=log_ids[0] if log_ids else "",
        partitions=[audit.report for audit in audits],
        findings=findings,
    )


def _verify_one(
    log: Log,
    partition: int,
    copies: Copies | None,
    until: Until,
    advance: Advance,
    make_rows: MakeRows,
    permits: PermitAudit,
    kept: Heads | None,
) -> _Audit:
    start, end = log.bounds(partition)
    wanted = {part: held[partition] for part, held in (copies or {}).items() if partition in held}
    with tempfile.TemporaryDirectory(prefix="minutebook-replay-") as folder:
        retention = wanted["view"].retention if "view" in wanted else None
        refold = Refold(Path(folder), partition, make_rows, retention or Retention())
        chain = Chain(*beginning(log, partition))
        audit = _Audit(
            PartitionReport(partition=partition, start=start, end=end), chain, refold, wanted, permits
        )
        try:
            audit.compare()
            if kept is not None:
                audit.against(kept.partitions.get(partition))
            for record in _through(log.read(partition, start, end), until):
                if not audit.take(record):
                    break
                advance(partition, 1)
            audit.finish(is_cut=until != TO_THE_END, needs_copies=copies is not None)
        finally:
            audit.close()
    return audit


def _through(records: Iterator[RawRecord], until: Until) -> Iterator[RawRecord]:
    for record in records:
        if until.is_over(record):
            return
        yield record


class _Audit:
    """One partition on its way."""

    def __init__(
        self,
        report: PartitionReport,
        chain: Chain,
        refold: Refold,
        copies: Mapping[Part, Copy],
        permits: PermitAudit,
    ) -> None:
        self.report = report
        self.findings: list[Finding] = []
        self.log_id = ""
        self._copies = copies
        self._chain = chain
        self._refold = refold
        self._permits = permits
        self._kept: Head | None = None
        self._can_fold = report.start == 0
        self._now = 0

    def take(self, record: RawRecord) -> bool:
        """One record more. False where nothing can be said of what follows."""
        try:
            frame = self._chain.take(record)
        except LogGapError:
            first, last = self._chain.reader.position + 1, record.offset - 1
            self._find(Fault(first, first, last, f"{last - first + 1} records are missing"))
            return False
        self.report.records += 1
        self._fold(frame)
        self.compare()
        return True

    def against(self, kept: Head | None) -> None:
        """Nothing through the position of that head may have changed."""
        self._kept = kept
        if kept is not None and kept.position < self.report.start:
            self._kept = None
            self.report.kept = NOT_REACHED

    def compare(self) -> None:
        """Compare with the copies made just here, and with the head that was kept here."""
        if self._kept is not None and self._kept.position == self._chain.reader.position:
            self._compare_head(self._kept)
        for part, copy in self._copies.items():
            if copy.position == self._chain.reader.position:
                self._compare(part, copy)

    def _fold(self, frame: Frame | None) -> None:
        if not self._can_fold:
            return
        try:
            self._refold.take(self._chain.reader, frame)
            if frame is not None:
                self._check(frame)
                self._permits.take(self.report.partition, frame, self._refold.book)
        except Exception as error:  # a frame that was changed can make the fold fail in any way
            self._can_fold = False
            self._refold.book.discard()
            self._find_at(self._chain.reader.position, f"a valid frame that cannot be folded: {error!r}")

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

    def _compare_head(self, kept: Head) -> None:
        is_same = self._chain.agrees(bytes.fromhex(kept.head))
        self.report.kept = EQUAL if is_same else DIFFERENT
        if not is_same:
            first = self._chain.unproven()
            what = f"the chain's head after {kept.position} is another than the one that was kept"
            self._find(Fault(first, first, kept.position, what))

    def _compare(self, part: Part, copy: Copy) -> None:
        if not self._chain.agrees(bytes.fromhex(copy.head)):
            first = self._chain.unproven()
            what = f"the chain's head after {copy.position} is another in the copy of the {_WHOSE[part]}"
            self._find(Fault(first, first, copy.position, what))
            self._outcome(part, DIFFERENT)
            return
        difference = (
            self._refold.difference(part, copy) if self._can_fold else "it cannot be folded up to there"
        )
        self._outcome(part, DIFFERENT if difference else EQUAL)
        if difference:
            self._find_at(copy.position, f"the copy of the {_WHOSE[part]} made here differs: {difference}")

    def finish(self, *, is_cut: bool, needs_copies: bool) -> None:
        """The last record is read. `is_cut`: by an end that the caller asked for."""
        report, chain = self.report, self._chain
        for part in ("streams", "view"):
            self._settle(part, is_cut=is_cut, is_needed=needs_copies)
        self._settle_head(is_cut=is_cut)
        report.frames, report.void = chain.frames, chain.void
        report.position, report.head = chain.reader.position, chain.reader.head.hex()
        report.unproven_from = chain.unproven()
        if report.start:
            report.unchecked = f"this stretch begins at offset {report.start}: nothing can be folded"
        if self._can_fold:
            report.digest = self._refold.digest("streams").hex()
        fault = chain.fault()
        if fault is not None:
            self.findings.insert(0, _finding(report.partition, fault))

    def _settle(self, part: Part, *, is_cut: bool, is_needed: bool) -> None:
        """The outcome of a comparison that never came."""
        report, copy = self.report, self._copies.get(part)
        if self._has_outcome(part):
            return
        if copy is None:
            if is_needed and report.end > report.start:
                self._outcome(part, NO_COPY)
                self._find_at(report.end - 1, f"there is no copy of the {_WHOSE[part]}")
        elif is_cut:
            self._outcome(part, NOT_REACHED)
        else:
            self._outcome(part, DIFFERENT)
            first, last = self._chain.reader.position + 1, copy.position
            self._find(
                Fault(first, first, last, f"the log ends before, the copy of the {_WHOSE[part]} goes on")
            )

    def _settle_head(self, *, is_cut: bool) -> None:
        """The outcome of a comparison with a kept head that never came."""
        kept = self._kept
        if kept is None or self.report.kept != NOT_ASKED:
            return
        self.report.kept = NOT_REACHED if is_cut else DIFFERENT
        if not is_cut:
            first = self._chain.reader.position + 1
            self._find(
                Fault(
                    first, first, kept.position, "the log ends before, records up to the kept head are gone"
                )
            )

    def _has_outcome(self, part: Part) -> bool:
        return (self.report.state if part == "streams" else self.report.view) != NOT_ASKED

    def _outcome(self, part: Part, outcome: str) -> None:
        if part == "streams":
            self.report.state = outcome
        else:
            self.report.view = outcome

    def _find_at(self, offset: int, what: str) -> None:
        self._find(Fault(offset, offset, offset, what))

    def _find(self, fault: Fault) -> None:
        self.findings.append(_finding(self.report.partition, fault))

    def close(self) -> None:
        """Give everything back."""
        self._refold.close()
        self._chain.close()


_WHOSE: dict[Part, str] = {"streams": "owner's state", "view": "view"}


def _finding(partition: int, fault: Fault) -> Finding:
    return Finding(partition, fault.offset, fault.first, fault.last, fault.what)
