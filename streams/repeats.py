"""Idle pulses: a session with nothing new to say sends the same bytes again, but for the sequence. They are not decoded again.

A report begins with its session and its sequence in every version of its schema; a tail that is the same has the same
meaning. Only reports that are a full pulse and nothing else are kept for comparison. What a session says again after
another report is news all the same, for that one may have changed its offer.
"""

from __future__ import annotations

from typing import Final

from minutebook.domain.records import Report
from minutebook.wire.numbers import varint
from minutebook.wire.schemas import HEADER_BYTES

SESSIONS_MAX: Final = 16_384
BYTES_MAX: Final = 1_024
"""Longer reports, of sessions that hold a hundred tokens, are decoded each time."""
SEQUENCE_BYTES_MAX: Final = 9
"""So long a number fits into 63 bits: what is longer is left to the decoder."""

_NOTHING: Final = b"", 0, b""


class Repeats:
    """What each session of a partition said last in a full pulse. Bounded."""

    def __init__(self) -> None:
        self._said: dict[bytes, tuple[bytes, Report]] = {}
        self._said_more: set[bytes] = set()
        """Sessions that sent another report since."""

    def __len__(self) -> int:
        """Sessions known."""
        return len(self._said)

    def again(self, value: bytes | None) -> str:
        """The session whose last report `value` is again, a full pulse; empty if it is none's."""
        speaker, _, tail = _parts(value)
        said = self._said.get(speaker)
        is_again = said is not None and said[0] == tail and speaker not in self._said_more
        return said[1].session if said is not None and is_again else ""

    def read(self, value: bytes | None) -> Report | None:
        """The report in `value` if it is the last full pulse of its session again, else None."""
        speaker, sequence, tail = _parts(value)
        said = self._said.get(speaker)
        if said is None or said[0] != tail:
            return None
        self._said_more.discard(speaker)
        before = said[1]
        return Report(before.session, sequence, before.pulse, before.full)

    def keep(self, value: bytes | None, report: Report) -> None:
        """`value` was decoded to `report`."""
        speaker, _, tail = _parts(value)
        if value is None or len(value) > BYTES_MAX or not _is_full_alone(report):
            if speaker in self._said:
                self._said_more.add(speaker)
            return
        if len(self._said) >= SESSIONS_MAX:
            self._said.clear()
            self._said_more.clear()
        if speaker:
            self._said[speaker] = tail, report
            self._said_more.discard(speaker)


def _is_full_alone(report: Report) -> bool:
    return report.full is not None and report == Report(
        report.session, report.sequence, report.pulse, report.full
    )


def _parts(value: bytes | None) -> tuple[bytes, int, bytes]:
    """Schema and session, the sequence, and what follows. The first is empty where `value` cannot be compared."""
    if value is None or len(value) <= HEADER_BYTES:
        return _NOTHING
    try:
        length, at = varint(value, HEADER_BYTES)
        start = at + length
        sequence, end = varint(value, start)
    except IndexError:
        return _NOTHING
    if end - start > SEQUENCE_BYTES_MAX:
        return _NOTHING
    return value[:start], sequence, value[end:]
