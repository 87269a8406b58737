"""Completeness of a time: every instant that schedules implied, against what ran or was explained; a report to keep."""

from __future__ import annotations

from collections import Counter
from typing import Final

import msgspec

from minutebook.history.completeness import ENDS, Completeness
from minutebook.history.ledger import MISSING, PENDING, RAN, Range
from minutebook.log.last_audit import Accounted, LastCompleteness
from minutebook.schedule.zones import TZDATA_VERSION
from minutebook.times import format_instant
from replay.frames import check_whole, frames_of, reader_of
from replay.reading import TO_THE_END, Advance, Log, Until, unheard

NAMED_MAX: Final = 10_000
"""Missing instants that a report names; beyond that it counts them."""


class MissingInstant(msgspec.Struct, frozen=True, kw_only=True):
    """One that is neither run nor explained; where `count` is more than 1, the first of so many in a row."""

    tenant: str
    job_id: str
    at: str
    count: int
    what: str


class TenantReport(msgspec.Struct, kw_only=True):
    """One tenant. `explained`: instants by the reason for which they did not run; `ended`: how executions ended, `open` of
    them had not by the end of the log; `pending`: due a moment ago.
    """

    tenant: str
    jobs: int
    implied: int
    ran: int
    explained: dict[str, int]
    pending: int
    missing: int
    ended: dict[str, int]
    open: int


class PartitionEnd(msgspec.Struct, kw_only=True):
    """How far a partition's log goes, and the head that proves it. The last `void_at_end` records of it are void."""

    partition: int
    position: int
    head: str
    ends_at: str | None
    void_at_end: int = 0


class CompletenessReport(msgspec.Struct, kw_only=True):
    """`ok`: nothing is missing. `behind_the_log`: partitions whose log ends before the time asked for does.

    `zone_data`: versions that owners decided by; `expanded_by` is the one here. Where they differ, an instant of a zone
    whose rules changed may be named although all was right.
    """

    ok: bool
    first_at: str
    last_at: str
    tenants: list[TenantReport]
    missing: list[MissingInstant]
    missing_more: int
    partitions: list[PartitionEnd]
    behind_the_log: list[int]
    zone_data: list[str]
    expanded_by: str

    def is_empty(self) -> bool:
        """Whether there was no record to read."""
        return not any(part.position >= 0 for part in self.partitions)

    def is_to_the_end(self) -> bool:
        """Whether the log says something through the last instant asked for."""
        return not self.behind_the_log and not any(part.void_at_end for part in self.partitions)


def last_of(report: CompletenessReport, made_at: int) -> LastCompleteness:
    """A report in short, for those who only ask how it went. `made_at`: ms since the epoch, UTC."""
    tenants = {item.tenant: Accounted(implied=item.implied, missing=item.missing) for item in report.tenants}
    return LastCompleteness(
        made_at=format_instant(made_at),
        first_at=report.first_at,
        last_at=report.last_at,
        tenants=tenants,
        behind_the_log=report.behind_the_log,
    )


def completeness(
    log: Log,
    partitions: list[int],
    asked: Range,
    tenant: str | None = None,
    advance: Advance = unheard,
    until: Until = TO_THE_END,
) -> CompletenessReport:
    """Instants from `asked.first_at` through `asked.last_at` (ms), of one tenant or of all.

    Raises SettingsError where a partition does not begin with its first record, LogError, KafkaError.
    """
    check_whole(log, partitions)
    report = CompletenessReport(
        ok=True,
        first_at=format_instant(asked.first_at),
        last_at=format_instant(asked.last_at),
        tenants=[],
        missing=[],
        missing_more=0,
        partitions=[],
        behind_the_log=[],
        zone_data=[],
        expanded_by=TZDATA_VERSION,
    )
    tenants: dict[str, TenantReport] = {}
    zone_data: set[str] = set()
    for partition in partitions:
        found = Completeness(asked)
        end = PartitionEnd(partition=partition, position=-1, head="", ends_at=None)
        reader = reader_of(log, partition)
        for frame in frames_of(log, partition, until, advance, reader):
            found.take(frame)
        found.finish()
        end.position, end.head = reader.position, reader.head.hex()
        end.void_at_end = reader.void_at_end
        end.ends_at = format_instant(found.now) if found.now else None
        report.partitions.append(end)
        if found.now < asked.last_at:
            report.behind_the_log.append(partition)
        zone_data |= found.zone_data
        _add(report, tenants, found, tenant)
    report.tenants = [tenants[name] for name in sorted(tenants)]
    report.zone_data = sorted(zone_data)
    report.ok = not report.missing
    return report


def _add(
    report: CompletenessReport, tenants: dict[str, TenantReport], found: Completeness, tenant: str | None
) -> None:
    for owner, job_id, ledger in found.jobs_of(tenant):
        item = tenants.setdefault(owner, _empty(owner))
        item.jobs += 1
        counts = Counter(ledger.counts)
        item.implied += counts.total()
        item.ran += counts.pop(RAN, 0)
        item.missing += counts.pop(MISSING, 0)
        item.pending += counts.pop(PENDING, 0)
        for reason, count in counts.items():
            item.explained[reason] = item.explained.get(reason, 0) + count
        for one in ledger.missing:
            if len(report.missing) < NAMED_MAX:
                missing = MissingInstant(
                    tenant=owner,
                    job_id=job_id,
                    at=format_instant(one.at),
                    count=one.count,
                    what=one.what,
                )
                report.missing.append(missing)
            else:
                report.missing_more += one.count
    for owner, ended in found.ends.items():
        if owner in tenants:
            for how in ENDS:
                tenants[owner].ended[how] += ended[how]
    for item in tenants.values():
        item.open = max(0, item.ran - sum(item.ended.values()))


def _empty(tenant: str) -> TenantReport:
    return TenantReport(
        tenant=tenant,
        jobs=0,
        implied=0,
        ran=0,
        explained={},
        pending=0,
        missing=0,
        ended=dict.fromkeys(ENDS, 0),
        open=0,
    )
