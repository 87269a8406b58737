"""Valid frames of a log, one partition after the other, for whoever asks what they say."""

from __future__ import annotations

from collections.abc import Iterator

from minutebook.log.reader import FrameReader, Taken
from minutebook.wire.frames import Frame
from replay.reading import TO_THE_END, Advance, Log, Until, unheard


def frames_of(
    log: Log,
    partition: int,
    until: Until = TO_THE_END,
    advance: Advance = unheard,
) -> Iterator[Frame]:
    """The valid frames of a partition from its first record on.

    Raises LogError where a record is missing or damaged: nothing can be said of what follows.
    """
    reader = FrameReader()
    start, end = log.bounds(partition)
    for record in log.read(partition, start, end):
        if until.is_over(record):
            return
        taken = reader.take(record)
        advance(partition, 1)
        if isinstance(taken, Taken):
            yield taken.frame
