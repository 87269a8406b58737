"""Is the log what it was, and is what owners and API believe what it says?

Reads every record of a partition once: validity, clock and chain (`chain`), folds its valid frames anew (`refold`), and
stops at the position of each copy to compare (`audit`). Partitions are read by several processes; what concerns several of
them is judged at the end.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from minutebook.errors import SettingsError
from minutebook.log.checkpoint import Copy, Part, newest
from minutebook.times import format_instant
from replay.audit import PARTS, Audit, unpaired_in
from replay.audit_store import keep_in, read_rows
from replay.files import FileLog
from replay.heads import Heads
from replay.parallel import Stopped, never, spread
from replay.permits import Unjudged, unpaired
from replay.reading import TO_THE_END, Advance, Log, Until, unheard
from replay.refold import MakeRows, on_disk
from replay.report import Finding, PartitionReport, Report

Copies = Mapping[Part, Mapping[int, Copy]]


def copies_in(checkpoint_dir: Path) -> Copies:
    """The newest copies in a checkpoint folder, by part and partition. Raises SettingsError."""
    return {part: newest(checkpoint_dir, part) for part in PARTS}


def verify(
    log: Log,
    partitions: list[int],
    copies: Copies | None = None,
    until: Until = TO_THE_END,
    advance: Advance = unheard,
    make_rows: MakeRows = on_disk,
    kept: Heads | None = None,
    *,
    folder: Path | None = None,
    processes: int = 1,
    is_stopped: Stopped = never,
) -> Report:
    """Audit `partitions` of `log` against `copies`; without copies the log alone. Folds over stores of `make_rows`.

    With copies given, each partition that holds a record needs one of its owner's state and one of the view. With `kept`
    heads, nothing up to them may have changed. What is kept in `folder` goes on from an earlier call, and can be gone on with.
    After a stop the report says how far each partition was read.
    Raises KafkaError where the log cannot be reached, SettingsError for a folder that holds another audit, ProcessDiedError.
    """
    with _kept_in(folder) as work:
        done = spread(
            _largest_first(log, partitions),
            _OfOne(log, copies, until, make_rows, kept, work),
            processes,
            advance,
            is_stopped,
        )
        audits = [done.get(partition) or _not_begun(log, partition) for partition in partitions]
        findings = [finding for audit in audits for finding in audit.findings]
        read = {audit.report.partition: audit.folded_through for audit in audits}
        left = [read_rows(unpaired_in(_place(work, partition))) for partition in done]
        unjudged: Counter[Unjudged] = Counter()
        for found in unpaired(left, read):
            if isinstance(found, Finding):
                findings.append(found)
            else:
                unjudged[found] += 1
    _tell(unjudged, audits)
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


def _tell(unjudged: Counter[Unjudged], audits: list[_Audited]) -> None:
    """Each partition's report names the permits in it that were not judged."""
    reports = {audit.report.partition: audit.report for audit in audits}
    for (partition, other), count in sorted(unjudged.items()):
        reports[partition].unchecked.append(
            f"{count} permits that came from partition {other} are not judged: its log was not folded as far as where "
            "they were granted or given back"
        )


class _Audited(NamedTuple):
    """What an audit says of its partition; `folded_through`: its last valid frame."""

    report: PartitionReport
    findings: list[Finding]
    log_id: str
    folded_through: int


class _OfOne(NamedTuple):
    """The work on one partition, as `spread` hands it to a process."""

    log: Log
    copies: Copies | None
    until: Until
    make_rows: MakeRows
    kept: Heads | None
    folder: Path

    def __call__(self, partition: int, advance: Advance, is_stopped: Stopped) -> _Audited:
        wanted = {part: held[partition] for part, held in (self.copies or {}).items() if partition in held}
        kept = None if self.kept is None else self.kept.partitions.get(partition)
        place = _place(self.folder, partition)
        place.mkdir(exist_ok=True)
        with closing(Audit(self.log, partition, place, wanted, kept, self.make_rows)) as audit:
            if audit.report.records:
                self._check_until(audit)
            is_interrupted = audit.can_begin() and self._read(audit, partition, advance, is_stopped)
            if isinstance(self.log, FileLog) and self.until == TO_THE_END and not is_interrupted:
                audit.end_with(self.log.head_after(partition))
            audit.finish(
                is_cut=self.until != TO_THE_END,
                is_interrupted=is_interrupted,
                needs_copies=self.copies is not None,
            )
            return _Audited(audit.report, audit.findings, audit.log_id, audit.folded_through)

    def _check_until(self, audit: Audit) -> None:
        """An audit that has read more than is asked for cannot answer for less."""
        offset, at = self.until
        read = f"the audit in {self.folder} has read partition {audit.report.partition} through"
        if offset is not None and offset < audit.position:
            raise SettingsError(f"{read} {audit.position}, --until ends at {offset}: choose a new folder")
        if at is not None and at < audit.stamp:
            raise SettingsError(
                f"{read} {format_instant(audit.stamp)}, --until ends at {format_instant(at)}: choose a new folder"
            )

    def _read(self, audit: Audit, partition: int, advance: Advance, is_stopped: Stopped) -> bool:
        """Take all records that are to be read; whether somebody stopped it."""
        advance(partition, audit.report.taken_over)
        start = max(audit.position + 1, audit.report.start)
        for record in self.log.read(partition, start, audit.report.end):
            if self.until.is_over(record) or not audit.take(record):
                return False
            advance(partition, 1)
            if is_stopped():
                return True
        return False


@contextmanager
def _kept_in(folder: Path | None) -> Iterator[Path]:
    """Where audits are kept: in `folder`, or for this time only."""
    if folder is not None:
        keep_in(folder)
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="minutebook-replay-") as made:
        yield Path(made)


def _place(folder: Path, partition: int) -> Path:
    return folder / f"partition-{partition}"


def _largest_first(log: Log, partitions: list[int]) -> list[int]:
    """So that no process is left with a large one at the end."""
    sizes = {partition: end - start for partition in partitions for start, end in [log.bounds(partition)]}
    return sorted(partitions, key=lambda partition: -sizes[partition])


def _not_begun(log: Log, partition: int) -> _Audited:
    start, end = log.bounds(partition)
    report = PartitionReport(
        partition=partition, start=start, end=end, is_interrupted=True, unchecked=["not begun in this call"]
    )
    return _Audited(report, [], "", -1)
