"""Work that nobody can do: executions that stay queued while no live worker knows their task, told after ten minutes.

In memory, and by level: every look finds anew what waits and who is there. A new owner counts its minutes from its
take-over. Instants are ms, UTC.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set
from typing import Final

from minutebook.domain.alerts import Waiting, unknown_task
from minutebook.domain.book import Book
from minutebook.log.draft import Draft
from streams.lanes import Lanes
from streams.sessions import Sessions

UNKNOWN_AFTER_MS: Final = 600_000
LOOK_EVERY_MS: Final = 10_000
RAISED_AT_ONCE: Final = 100
"""Alerts of one look; what is left comes with the next ones."""

_Task = tuple[str, str, str]
"""Tenant, queue, task."""


class UnknownTasks:
    """What waits in a partition for a task that no live session knows. What waits on `open_queues` is claimed by name."""

    def __init__(self, book: Book, lanes: Lanes, open_queues: Set[str], sessions: Sessions) -> None:
        self._book = book
        self._lanes = lanes
        self._open_queues = open_queues
        self._sessions = sessions
        self._since: dict[_Task, int] = {}
        self._looked_at = -LOOK_EVERY_MS

    def look(self, draft: Draft) -> None:
        """Look, every ten seconds; raise an alert for each task that nobody has known for ten minutes."""
        if draft.now - self._looked_at < LOOK_EVERY_MS:
            return
        self._looked_at = draft.now
        waiting = self._waiting()
        self._since = {task: self._since.get(task, draft.now) for task in waiting}
        raised = 0
        for task, since in self._since.items():
            waited_ms = draft.now - since
            if waited_ms < UNKNOWN_AFTER_MS or raised == RAISED_AT_ONCE or not draft.room():
                continue
            alert = unknown_task(self._book, Waiting(*task, waiting[task], waited_ms), draft.now)
            if alert is not None:
                draft.add(alert)
                raised += 1

    def _waiting(self) -> dict[_Task, int]:
        """How many wait for each task that nobody knows. A paused queue waits for something else."""
        found: dict[_Task, int] = defaultdict(int)
        for queue, lanes in self._lanes.by_queue.items():
            if queue in self._open_queues or self._book.is_paused(queue):
                continue
            known = {task for session in self._sessions if queue in session.queues for task in session.tasks}
            for prefix, queued in lanes.items():
                lane = queued.lane
                count = 0 if lane.task in known else self._book.counts.get(prefix) or 0
                if count:
                    found[lane.tenant, queue, lane.task] += count
        return dict(found)
