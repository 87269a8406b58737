"""Valid frames of a log, one partition after the other, for whoever asks what they say."""

from __future__ import annotations

from collections.abc import Iterator

from minutebook.errors import LogMismatchError, SettingsError
from minutebook.log.port import RawRecord
from minutebook.log.reader import FrameReader, Taken, Void
from minutebook.wire.frames import Frame
from replay.files import FileLog
from replay.reading import TO_THE_END, Advance, Log, Until, beginning, unheard
from replay.tenant_files import TenantLog


class AuditReader(FrameReader):
    """One that knows how many of the records that it took last were void, in a row."""

    void_at_end = 0

    def take(self, record: RawRecord) -> Taken | Void:
        """See `FrameReader.take`."""
        taken = super().take(record)
        self.void_at_end = self.void_at_end + 1 if isinstance(taken, Void) else 0
        return taken


def void_note(partition: int, position: int, void_at_end: int) -> str:
    """What to say of a reading through `position` whose last records were void; empty where they were not.

    An owner that lost its partition leaves a few; behind a record that was changed, all are.
    """
    if not void_at_end:
        return ""
    return (
        f"partition {partition}: the last {void_at_end} records, from offset {position - void_at_end + 1} through "
        f"{position}, are void and say nothing; whether the chain is broken there, `python -m replay verify` tells"
    )


def records_taken(
    log: Log, partition: int, reader: AuditReader, until: Until = TO_THE_END, advance: Advance = unheard
) -> Iterator[Frame | None]:
    """Each record of a partition up to `until`: its frame, None where it is void.

    Raises LogError where a record is missing or damaged, and where exported files end on another head of the chain than they
    were exported with.
    """
    for record in log.read(partition, *log.bounds(partition)):
        if until.is_over(record):
            return
        taken = reader.take(record)
        yield taken.frame if isinstance(taken, Taken) else None
        advance(partition, 1)
    if isinstance(log, FileLog) and reader.head != log.head_after(partition):
        raise LogMismatchError(
            f"the files of partition {partition} end on another head of the chain than they were exported with; the last "
            f"record that continues the chain is at offset {reader.position - reader.void_at_end}"
        )


def frames_of(
    log: Log,
    partition: int,
    until: Until = TO_THE_END,
    advance: Advance = unheard,
    reader: AuditReader | None = None,
) -> Iterator[Frame]:
    """The valid frames of a partition from its first record on; `reader` tells afterwards how far it was read.

    Of one tenant's files they are its parts of them. Raises LogError where a record is missing or damaged: nothing can be
    said of what follows.
    """
    reader = reader or reader_of(log, partition)
    if isinstance(log, TenantLog):
        yield from log.frames(partition, until, advance, reader)
        return
    for frame in records_taken(log, partition, reader, until, advance):
        if frame is not None:
            yield frame


def reader_of(log: Log, partition: int) -> AuditReader:
    """One that stands before the first record that must be there of a partition."""
    start, head = beginning(log, partition)
    return AuditReader(start - 1, head)


def check_whole(log: Log, partitions: list[int]) -> None:
    """Raises SettingsError where a partition does not begin with its first record: what it folds to is not known then."""
    for partition in partitions:
        start, _ = log.bounds(partition)
        if start:
            raise SettingsError(
                f"partition {partition} begins at offset {start} here: this needs the log from its first record on"
            )
