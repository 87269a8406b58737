"""Are one tenant's files what the log holds of it?

Alone they can only be consistent: who makes such files can make up others. With the log, or a full export of it, each
record of theirs is found there: the chain's head after it is the same, and what the whole frame holds of the tenant is
exactly what is here. What the log holds of the tenant in that stretch and the files do not is found, too.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from itertools import groupby, zip_longest
from operator import itemgetter

import msgspec

from minutebook.log.reader import CLOCK_BOUND_MS, FrameReader, Taken
from replay.files import Stretch
from replay.frames import reader_of
from replay.part import bare, is_blank, part_of
from replay.reading import Advance, Log, unheard
from replay.report import DIFFERENT, EQUAL, NOT_ASKED, Finding
from replay.tenant_files import Parts, TenantLog, TenantManifest, TenantRecord


class PartReport(msgspec.Struct, kw_only=True):
    """One partition: `records` of the stretch from `start` up to and without `end` hold something of the tenant.

    `head_before` and `head_after` are the chain's heads around the stretch, in hex. `log`: whether the log agrees.
    """

    partition: int
    start: int
    end: int
    records: int
    events: int
    head_before: str
    head_after: str
    log: str = NOT_ASKED


class TenantReport(msgspec.Struct, kw_only=True):
    """The whole of it. `ok`: everything that was checked agrees; `is_proved`: it was found in the log."""

    ok: bool
    is_proved: bool
    tenant: str
    topic: str
    partitions: list[PartReport]
    findings: list[Finding]


def verify_part(files: TenantLog, whole: Log | None = None, advance: Advance = unheard) -> TenantReport:
    """Check one tenant's files, and with `whole` that it holds the same: of each partition there must be one stretch.

    Raises SettingsError for files that cannot be read, LogError where `whole` cannot be read on, KafkaError.
    """
    strays = _strays(files.manifest)
    reports, findings = [], list(strays.values())
    there = [] if whole is None else whole.partitions()
    if whole is not None and len(there) != files.manifest.partitions:
        what = f"the log has {len(there)} partitions, the files know of {files.manifest.partitions}"
        findings.append(Finding(0, 0, 0, 0, what))
    for stretch in files.manifest.stretches:
        if stretch.partition in strays:
            continue
        check = _Check(files.tenant, stretch)
        check.alone(files.records(stretch.partition))
        if whole is not None and stretch.partition in there:
            check.against(whole, files.records(stretch.partition), advance)
        reports.append(check.report)
        findings += check.findings
    return TenantReport(
        ok=not findings,
        is_proved=whole is not None and not findings,
        tenant=files.tenant,
        topic=files.topic,
        partitions=reports,
        findings=findings,
    )


def _strays(manifest: TenantManifest) -> dict[int, Finding]:
    """Partitions of which there is not exactly one stretch, or none should be, with what is wrong."""
    counts = Counter(stretch.partition for stretch in manifest.stretches)
    found = {}
    for partition in sorted({*range(manifest.partitions), *counts}):
        if partition not in range(manifest.partitions):
            what = "it lies behind the last partition that the files know of"
        elif counts[partition] != 1:
            what = f"{counts[partition]} stretches of this partition are here instead of one"
        else:
            continue
        found[partition] = Finding(partition, 0, 0, 0, what)
    return found


class _Check:
    """One partition on its way."""

    def __init__(self, tenant: str, stretch: Stretch) -> None:
        self.findings: list[Finding] = []
        self.report = PartReport(
            partition=stretch.partition,
            start=stretch.start,
            end=stretch.end,
            records=0,
            events=0,
            head_before=stretch.head_before,
            head_after=stretch.head_after,
        )
        self._tenant = tenant
        self._stretch = stretch

    # -- the files alone

    def alone(self, records: Iterator[TenantRecord]) -> None:
        """Whether they fit together."""
        before: TenantRecord | None = None
        for record in records:
            self.report.records += bool(record.frame.events)
            self.report.events += sum(not is_blank(event) for event in record.frame.events)
            what = self._misfit(record) or self._break(record, before)
            if what:
                self._find(record.offset, what)
            before = record
        last = b"" if before is None or before.offset != self._stretch.end - 1 else before.head
        if before is not None and last and last.hex() != self._stretch.head_after:
            self._find(before.offset, "the head after the stretch is not the one after its last record")

    def _misfit(self, record: TenantRecord) -> str:
        """What is wrong with a record by itself."""
        frame = record.frame
        if not self._stretch.start <= record.offset < self._stretch.end:
            return "it lies outside of the stretch"
        if frame.offset != record.offset:
            return f"its frame is one for offset {frame.offset}"
        if (part_of(frame, self._tenant) or bare(frame)) != frame:
            return f"it holds more than what is {self._tenant}'s own"
        if frame.now > record.stamp + CLOCK_BOUND_MS:
            return f"its time is {frame.now - record.stamp} ms ahead of the broker's stamp"
        return ""

    def _break(self, record: TenantRecord, before: TenantRecord | None) -> str:
        """Why a record cannot follow the one before it."""
        head = bytes.fromhex(self._stretch.head_before) if record.offset == self._stretch.start else None
        if before is not None:
            if record.offset <= before.offset:
                return f"it comes behind offset {before.offset}"
            if not before.frame.now <= record.before_at <= record.frame.now:
                return "its time, or that of the decision before it, does not fit to the record before"
            head = before.head if record.offset == before.offset + 1 else None
        return (
            "it is built on another head than the one before it"
            if head not in (None, record.frame.head)
            else ""
        )

    # -- against the log

    def against(self, whole: Log, records: Iterator[TenantRecord], advance: Advance) -> None:
        """Whether the log holds exactly that."""
        stretch, known = self._stretch, len(self.findings)
        reader = reader_of(whole, stretch.partition)
        if reader.position + 1 > stretch.start:
            self._find(stretch.start, f"the log at hand begins at offset {reader.position + 1}")
        else:
            self._side_by_side(records, self._expected(whole, reader, advance))
            if reader.position + 1 < stretch.end:
                self._find(reader.position + 1, "the log at hand ends before")
            elif reader.head.hex() != stretch.head_after:
                self._find(stretch.end - 1, "the head after the stretch is another in the log")
        self.report.log = EQUAL if len(self.findings) == known else DIFFERENT

    def _expected(self, whole: Log, reader: FrameReader, advance: Advance) -> Iterator[TenantRecord]:
        """What an export of the same stretch would be."""
        stretch, parts = self._stretch, Parts(self._tenant)
        for record in whole.read(stretch.partition, reader.position + 1, stretch.end):
            taken = reader.take(record)
            advance(stretch.partition, 1)
            if record.offset == stretch.start and reader.head_before.hex() != stretch.head_before:
                self._find(record.offset, "the head before the stretch is another in the log")
            if record.offset >= stretch.start and isinstance(taken, Taken):
                yield from parts.take(taken, reader.head)
        yield from parts.rest()

    def _side_by_side(self, ours: Iterator[TenantRecord], theirs: Iterator[TenantRecord]) -> None:
        """Files and log, in order of offsets."""
        both = heapq.merge(((one.offset, 0, one) for one in ours), ((one.offset, 1, one) for one in theirs))
        for offset, group in groupby(both, key=itemgetter(0)):
            sides = {side: record for _, side, record in group}
            if 1 not in sides:
                self._find(offset, f"the log holds nothing of {self._tenant} there")
            elif 0 not in sides:
                self._find(offset, f"what the log holds of {self._tenant} there is left out here")
            elif sides[0] != sides[1]:
                self._find(offset, _difference(sides[0], sides[1]))

    def _find(self, offset: int, what: str) -> None:
        self.findings.append(Finding(self._stretch.partition, offset, offset, offset, what))


def _difference(ours: TenantRecord, theirs: TenantRecord) -> str:
    """What is not the same."""
    pairs = zip_longest(ours.frame.events, theirs.frame.events)
    for number, (event, other) in enumerate(pairs):
        if event != other:
            return f"event {number} ({type(other or event).__name__}) is another in the log"
    if ours.head != theirs.head:
        return "the chain's head after it is another in the log"
    return "its header (owner, times, stamp) is another in the log"
