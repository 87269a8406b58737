"""One task that nobody knows is told once: each partition in which it waits raises an alert of its own."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

from minutebook.domain.alerts import QUIET_MS, UNKNOWN
from minutebook.domain.records import Alert

KNOWN_MAX: Final = 10_000


class _Told(NamedTuple):
    id: str
    at: int


class Repeats:
    """The tasks that were told of last, in memory: after a restart one may be told of once more."""

    def __init__(self) -> None:
        self._told: OrderedDict[tuple[str, str, str], _Told] = OrderedDict()

    def is_repeat(self, alert: Alert) -> bool:
        """Whether another alert has told of the same within the hour; if not, this one does from here on."""
        if alert.kind != UNKNOWN:
            return False
        subject = alert.tenant, alert.queue, alert.task
        told = self._told.get(subject)
        if told is not None and told.id != alert.id and abs(alert.at - told.at) < QUIET_MS:
            return True
        self._told[subject] = _Told(alert.id, alert.at)
        self._told.move_to_end(subject)
        if len(self._told) > KNOWN_MAX:
            self._told.popitem(last=False)
        return False
