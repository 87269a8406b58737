"""Payloads against the types that workers declared for their tasks, before a command is sent."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

from api.payload_check import PayloadCheck
from api.problems import Refused
from api.view import View

KEPT_MAX: Final = 256


class _Ready(NamedTuple):
    version: int
    check: PayloadCheck


class TaskTypes:
    """The newest type of each task, as the view knows it; a few hundred schemas are kept ready."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._ready: OrderedDict[str, _Ready] = OrderedDict()

    def check(self, task: str, payload: bytes) -> bool:
        """Whether there was a type to check by. Raises Refused (bad-payload) where the payload does not fit it."""
        check = self._newest(task)
        if check is None:
            return False
        faults = check.faults(payload)
        if faults:
            raise Refused("bad-payload", errors=faults)
        return True

    def _newest(self, task: str) -> PayloadCheck | None:
        row = self._view.task(task)
        if row is None or not row.payload_schema:
            return None
        ready = self._ready.get(task)
        if ready is None or ready.version != row.version:
            ready = self._ready[task] = _Ready(row.version, PayloadCheck(row.payload_schema))
            if len(self._ready) > KEPT_MAX:
                self._ready.popitem(last=False)
        self._ready.move_to_end(task)
        return ready.check
