"""Leases and offers after a take-over, read again from `worker-reports`.

The window ends at the input offset of the last valid frame and goes back one longest lease, at most 60 s, by stamps.
Only the pulse parts of its records count: what they reported is in the log already.
"""

from __future__ import annotations

from typing import Final

from minutebook.domain.offers import hear
from minutebook.domain.records import Report
from minutebook.domain.senseless import senseless
from minutebook.errors import DecodeError
from minutebook.log.kafka import read_range
from minutebook.log.port import RawRecord
from minutebook.log.settings import KafkaSettings
from minutebook.wire import codec, topics
from streams.sessions import Sessions

WINDOW_MS: Final = 60_000


async def rebuild_sessions(
    kafka: KafkaSettings, sessions: Sessions, partition: int, start: int, end: int, position: int
) -> None:
    """Hear the pulses of `worker-reports` from `start` up to and without `end`. `position` = last offset of the log."""
    async for record in read_range(kafka, topics.REPORTS, partition, start, end):
        hear_again(sessions, record, position)


def hear_again(sessions: Sessions, record: RawRecord, position: int) -> None:
    """The pulse in one record, unless its report was refused. `position` = last offset of the log."""
    try:
        report = codec.decode(record.value)
    except DecodeError:
        return
    if not isinstance(report, Report) or senseless(report, position):
        return
    session = sessions.speaker(report)
    if session is None:
        return
    hear(session, report, record.stamp)
    session.claimed = session.sequence
    if report.full is not None:
        for token in report.full.held:
            session.unacknowledged.pop(token, None)
            session.listed.add(token)
