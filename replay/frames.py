"""Valid frames of a log, one partition after the other, for whoever asks what they say."""

from __future__ import annotations

from collections.abc import Iterator

from minutebook.errors import SettingsError
from minutebook.log.reader import FrameReader, Taken
from minutebook.wire.frames import Frame
from replay.reading import TO_THE_END, Advance, Log, Until, beginning, unheard
from replay.tenant_files import TenantLog


def frames_of(
    log: Log,
    partition: int,
    until: Until = TO_THE_END,
    advance: Advance = unheard,
    reader: FrameReader | None = None,
) -> Iterator[Frame]:
    """The valid frames of a partition from its first record on; `reader` tells afterwards how far it was read.

    Of one tenant's files they are its parts of them. Raises LogError where a record is missing or damaged: nothing can be
    said of what follows.
    """
    reader = reader or reader_of(log, partition)
    if isinstance(log, TenantLog):
        yield from log.frames(partition, until, advance, reader)
        return
    start, end = log.bounds(partition)
    for record in log.read(partition, start, end):
        if until.is_over(record):
            return
        taken = reader.take(record)
        advance(partition, 1)
        if isinstance(taken, Taken):
            yield taken.frame


def reader_of(log: Log, partition: int) -> FrameReader:
    """One that stands before the first record that must be there of a partition."""
    start, head = beginning(log, partition)
    return FrameReader(start - 1, head)


def check_whole(log: Log, partitions: list[int]) -> None:
    """Raises SettingsError where a partition does not begin with its first record: what it folds to is not known then."""
    for partition in partitions:
        start, _ = log.bounds(partition)
        if start:
            raise SettingsError(
                f"partition {partition} begins at offset {start} here: this needs the log from its first record on"
            )
