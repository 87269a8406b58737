"""How many jobs have their next instant when, by minute and by hour: kept as counts, for each tenant and partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from minutebook.domain import view_rows as keys

if TYPE_CHECKING:
    from minutebook.domain.view import PartitionView

MINUTES: Final = "due_counts"
HOURS: Final = "due_hours"
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(int).decode


def due_counts(
    view: PartitionView, tenant: str, start: int, end: int, family: str = MINUTES
) -> Iterator[tuple[int, int]]:
    """(minute, jobs due in it) of a tenant, from minute `start` up to `end`, not included; of `HOURS` it is hours.

    Both are counted from the epoch. Reads committed rows only.
    """
    first, last = (keys.due_row(view.prefix, tenant, number) for number in (start, end))
    for key, value in view.rows.scan(family, first, last):
        yield keys.due_number(key), _decode(value)


def drained(view: PartitionView) -> dict[str, dict[bytes, bytes | None]]:
    """The due counts that changed, by minute and by hour; where nothing is due any more there is no row."""
    minutes: Counter[tuple[str, int]] = Counter()
    hours: Counter[tuple[str, int]] = Counter()
    for (tenant, before_at, next_at), count in Counter(view.due_moves).items():
        for at, change in ((before_at, -count), (next_at, count)):
            if at >= 0:
                minutes[tenant, at // keys.MINUTE_MS] += change
                hours[tenant, at // keys.HOUR_MS] += change
    return {
        MINUTES: _rows(view, MINUTES, minutes),
        HOURS: _rows(view, HOURS, hours),
    }


def _rows(view: PartitionView, family: str, changes: Counter[tuple[str, int]]) -> dict[bytes, bytes | None]:
    found: dict[bytes, bytes | None] = {}
    for (tenant, number), change in changes.items():
        if change:
            key = keys.due_row(view.prefix, tenant, number)
            stored = view.rows.get(family, key)
            count = change + (0 if stored is None else _decode(stored))
            found[key] = _encode(count) if count else None
    return found
