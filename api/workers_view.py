"""The workers as their pulses say: a view of the last minutes of `worker-reports`, in memory alone.

Nothing here is a fact of the log. Instants are ms, UTC, by the broker's stamps; memory is bounded whatever is pulsed.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from minutebook.domain.records import FullPulse, QueueOffer
from minutebook.ids import is_name, worker_of
from minutebook.wire.report_heads import ReportHead, read_head

WORKERS_MAX: Final = 10_000
SESSIONS_MAX: Final = 200_000
HELD_KEPT_MAX: Final = 1_000
NAMES_MAX: Final = 1_000
NAME_CHARS_MAX: Final = 256
LEASE_MS_MAX: Final = 600_000
FORGET_MS: Final = 300_000
"""A silent worker is shown so long after its lease."""
HEARD_MS: Final = 60_000
"""One that pulsed within this can be asked for something."""
_SWEEP_EVERY_MS: Final = 10_000

Status = Literal["active", "quiet", "leaving", "silent"]


class SeenSession(msgspec.Struct):
    """A worker toward one partition. `held`: the first tokens that it holds, `running` of them in all."""

    partition: int
    name: str
    number: int
    stamp: int
    offered: int = 0
    running: int = 0
    held: list[int] = []


class SeenWorker(msgspec.Struct):
    """A worker, as its last full pulse and its last pulse say; sessions by partition."""

    id: str
    name: str
    version: str
    tasks: list[str]
    queues: list[QueueOffer]
    lease_ms: int
    stamp: int
    is_leaving: bool = False
    is_quiet: bool = False
    sessions: dict[int, SeenSession] = {}

    def status(self, now: int) -> Status:
        """What it is at `now`."""
        if now - self.stamp > self.lease_ms:
            return "silent"
        if self.is_leaving:
            return "leaving"
        return "quiet" if self.is_quiet else "active"

    def is_forgotten(self, now: int) -> bool:
        """Whether there is nothing to say of it any more; one that left in order is not missed."""
        return now - self.stamp > self.lease_ms + (0 if self.is_leaving else FORGET_MS)


class WorkersView:
    """Workers by id."""

    def __init__(self) -> None:
        self._workers: dict[str, SeenWorker] = {}
        self._sessions = 0
        self._swept_at = 0

    # -- reports come in

    def take(self, partition: int, value: bytes | None, stamp: int) -> None:
        """A record of `worker-reports`. What is no report, or senseless, is passed over."""
        head = read_head(value)
        if head is not None and head.pulse is not None and _is_sensible(head):
            worker = self._worker(head, stamp)
            if worker is not None:
                self._hear(worker, partition, head, stamp)
        if stamp - self._swept_at >= _SWEEP_EVERY_MS:
            self.sweep(stamp)

    def _worker(self, head: ReportHead, stamp: int) -> SeenWorker | None:
        """The worker that speaks, renewed by a full pulse. A new one must begin with one."""
        worker_id, full = worker_of(head.session), head.full
        worker = self._workers.get(worker_id)
        if worker is None and full is not None and len(self._workers) < WORKERS_MAX:
            worker = self._workers[worker_id] = SeenWorker(worker_id, "", "", [], [], 0, stamp)
        if worker is not None and full is not None and stamp >= worker.stamp:
            _renew(worker, full)
        return worker

    def _hear(self, worker: SeenWorker, partition: int, head: ReportHead, stamp: int) -> None:
        number = int(head.session.rpartition(".")[2])
        session = worker.sessions.get(partition)
        if session is None or number > session.number:
            if session is None and self._sessions >= SESSIONS_MAX:
                return
            self._sessions += session is None
            session = worker.sessions[partition] = SeenSession(partition, head.session, number, stamp)
        if number < session.number or stamp < session.stamp or head.pulse is None:
            return
        session.stamp, session.offered = stamp, max(0, head.pulse.offer)
        if head.full is not None:
            session.running, session.held = len(head.full.held), head.full.held[:HELD_KEPT_MAX]
        if stamp >= worker.stamp:
            worker.stamp = stamp
            worker.is_leaving, worker.is_quiet = head.pulse.is_leaving, head.pulse.is_quiet

    def sweep(self, now: int) -> None:
        """Forget workers, and sessions of those that live on, that are silent for long."""
        self._swept_at = now
        for worker_id in [name for name, worker in self._workers.items() if worker.is_forgotten(now)]:
            self._sessions -= len(self._workers.pop(worker_id).sessions)
        for worker in self._workers.values():
            oldest = now - worker.lease_ms - FORGET_MS
            for partition in [number for number, it in worker.sessions.items() if it.stamp < oldest]:
                del worker.sessions[partition]
                self._sessions -= 1

    # -- answers come out

    def workers(self, now: int) -> list[SeenWorker]:
        """All workers that are not forgotten at `now`, by name, then id."""
        self.sweep(now)
        return sorted(self._workers.values(), key=lambda worker: (worker.name, worker.id))

    def worker(self, worker_id: str, now: int) -> SeenWorker | None:
        """One of them."""
        found = self._workers.get(worker_id)
        return None if found is None or found.is_forgotten(now) else found


def _is_sensible(head: ReportHead) -> bool:
    number = head.session.rpartition(".")[2]
    return is_name(worker_of(head.session)) and number.isascii() and number.isdecimal() and len(number) < 10


def _renew(worker: SeenWorker, full: FullPulse) -> None:
    worker.name, worker.version = full.worker[:NAME_CHARS_MAX], full.version[:NAME_CHARS_MAX]
    worker.lease_ms = min(max(full.lease_ms, 0), LEASE_MS_MAX)
    if worker.tasks != full.tasks:
        worker.tasks = [name[:NAME_CHARS_MAX] for name in full.tasks[:NAMES_MAX]]
    if worker.queues != full.queues:
        worker.queues = [
            QueueOffer(queue.name[:NAME_CHARS_MAX], queue.cap) for queue in full.queues[:NAMES_MAX]
        ]
