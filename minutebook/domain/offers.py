"""Sessions and what they offer: in memory only, rebuilt from `worker-reports` at a take-over.

Nothing here is an event. A session's free slots toward this partition = its offer less every grant above the last
token that it says it has seen, those that ended meanwhile too. Instants are the broker's stamps, in ms.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Set
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple

from minutebook.domain.outputs import START_WITHIN_MS
from minutebook.domain.records import FullPulse, Report

OFFER_MAX: Final = 65_536
TASKS_MAX: Final = 1_000
UNACKNOWLEDGED_HOLD_MS: Final = 500
WITHDRAW_MS: Final = 2_000
RETURNS_FREE: Final = 4
RETURN_PAUSE_MS: Final = 50
"""A session that returns grants and keeps none, more often than so in a row, gets the next after this pause, which doubles."""
LEASE_MIN_MS: Final = 1_000
LEASE_MAX_MS: Final = 600_000
NOTHING: Final[frozenset[int]] = frozenset()
NO_QUEUES: Final[Mapping[int, str]] = MappingProxyType({})


class Session:
    """One life of a worker toward this partition. A large fleet has thousands: they are looked at often, and together."""

    __slots__ = (
        "above",
        "capped",
        "claimed",
        "compared",
        "is_known",
        "is_leaving",
        "is_started",
        "is_void",
        "last_token",
        "lease_ms",
        "listed",
        "missing",
        "name",
        "offer",
        "paused_until",
        "permitted",
        "planned",
        "pulse_ms",
        "queues",
        "renewed_by",
        "returns",
        "running",
        "sent_at",
        "sequence",
        "stamp",
        "tasks",
        "told",
        "told_at",
        "unacknowledged",
        "withdraw_ms",
        "withdrawn",
        "worker",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.worker = ""
        self.tasks: frozenset[str] = frozenset()
        self.queues: dict[str, int | None] = {}
        self.renewed_by: FullPulse | None = None
        self.lease_ms = 10_000
        self.pulse_ms = 3_000
        self.sequence = -1
        self.claimed = -1
        self.stamp = -1
        self.offer = 0
        self.last_token = -1
        self.is_leaving = False
        self.is_void = True
        self.is_known = False
        self.is_started = False
        self.running: dict[int, bytes] = {}
        self.above: deque[int] = deque()
        self.capped: dict[int, str] = {}
        self.unacknowledged: dict[int, None] = {}
        self.permitted: set[int] = set()
        """Of its tokens those that run under permits: nobody else may run meanwhile, so they are withdrawn late."""
        self.sent_at: dict[int, int] = {}
        self.listed: set[int] = set()
        self.missing: dict[int, int] = {}
        self.compared = -1
        self.withdraw_ms = WITHDRAW_MS
        self.withdrawn: set[bytes] = set()
        self.planned = 0
        self.returns = 0
        """Reports in a row that returned grants, and none that says that one was kept."""
        self.paused_until = -1
        self.told: list[int] = []
        """What it was told last of the work that waits for it, by priority; empty = nothing yet."""
        self.told_at = 0

    def free(self) -> int:
        """Executions that may still be granted to it."""
        if self.is_void or self.is_leaving:
            return 0
        return self.offer - len(self.above) - self.planned

    def free_for(self, queue: str) -> int:
        """Free slots for one of its queues, under the cap that it set for that queue."""
        free = self.offer - len(self.above) - self.planned
        cap = self.queues[queue]
        if cap is None:
            return free
        return min(free, cap - sum(1 for name in self.capped.values() if name == queue) - self.planned)

    def has_caps(self) -> bool:
        """Whether it set a cap for any queue."""
        return any(cap is not None for cap in self.queues.values())

    def is_heard(self, now: int) -> bool:
        """Whether it is known and its last pulse is young enough."""
        return self.is_known and now - self.stamp < 2 * self.pulse_ms

    def may_be_granted(self, now: int) -> bool:
        """Whether it is heard, acknowledges what it gets, and does not merely return it."""
        if not self.is_known or now - self.stamp >= 2 * self.pulse_ms or now < self.paused_until:
            return False
        if not self.unacknowledged:
            return True
        oldest = self.oldest_unacknowledged_at()
        return oldest is None or now - oldest < UNACKNOWLEDGED_HOLD_MS

    def oldest_unacknowledged_at(self) -> int | None:
        """When the inbox record of the oldest unacknowledged grant was acknowledged by the broker; None: none such."""
        for token in self.unacknowledged:
            return self.sent_at.get(token >> 16)
        return None

    def take(
        self, running: dict[int, bytes], queues: Mapping[int, str] = NO_QUEUES, permitted: Set[int] = NOTHING
    ) -> None:
        """Grants to it are in the log: rows by token, rising; their queues where the session caps any; which have permits."""
        self.running.update(running)
        self.permitted.update(permitted)
        above = [token for token in running if token > self.last_token]
        self.above.extend(above)
        if queues:
            self.capped.update({token: queues[token] for token in above})
        self.unacknowledged.update(dict.fromkeys(running))

    def withdraw_at(self, token: int) -> int | None:
        """When an unacknowledged grant may be taken back, None if the broker has not acknowledged it yet, or its end waits
        for something else than time.

        One under permits only once a pulse that came a lease after `start_by` has not seen it: whoever wrote that pulse
        has not started it and never will, or has lost its lease meanwhile.
        """
        sent_at = self.sent_at.get(token >> 16)
        if token not in self.permitted or not sent_at:
            return None if sent_at is None else sent_at + self.withdraw_ms
        return None if token <= self.last_token else sent_at + START_WITHIN_MS + 2 * self.lease_ms

    def next_withdrawal_at(self) -> int | None:
        """When the first of its grants may be taken back, None if none may."""
        tokens = self.unacknowledged if self.permitted else islice(self.unacknowledged, 1)
        return min((at for token in tokens if (at := self.withdraw_at(token)) is not None), default=None)

    def drop(self, token: int) -> None:
        """That grant runs no more."""
        self.running.pop(token, None)
        self.unacknowledged.pop(token, None)
        if self.listed:
            self.listed.discard(token)
        if self.missing:
            self.missing.pop(token, None)
        if self.permitted:
            self.permitted.discard(token)
        if not self.unacknowledged:
            self.sent_at.clear()

    def full(self, pulse: FullPulse) -> None:
        """What a full pulse renews; nothing where it is the very one that was heard last."""
        if pulse is self.renewed_by:
            return
        self.renewed_by = pulse
        self.worker = pulse.worker
        self.tasks = frozenset(pulse.tasks)
        self.queues = {queue.name: queue.cap for queue in pulse.queues}
        self.lease_ms = min(max(pulse.lease_ms, LEASE_MIN_MS), LEASE_MAX_MS)
        self.pulse_ms = min(max(pulse.pulse_ms, 100), self.lease_ms)
        self.is_known = True

    def lease_end(self) -> int:
        """A stamp read beyond this ends the lease."""
        return self.stamp + self.lease_ms


class Missing(NamedTuple):
    """Tokens that a session does not hold, though it has seen them: once listed, or never."""

    lost: list[int]
    never_taken: list[int]


def hear(session: Session, report: Report, stamp: int) -> bool:
    """The pulse part of a report: offer, last token seen, leaving. False for an old sequence, which changes nothing."""
    session.stamp = max(session.stamp, stamp)
    if report.sequence <= session.sequence:
        return False
    if session.sequence < 0:
        session.claimed = report.sequence - 1
    session.sequence = report.sequence
    _count_returns(session, report, stamp)
    if report.full is not None:
        session.full(report.full)
    pulse = report.pulse
    if pulse is not None:
        session.last_token = max(session.last_token, pulse.last_token)
        while session.above and session.above[0] <= session.last_token:
            session.capped.pop(session.above.popleft(), None)
        session.offer = min(max(pulse.offer, 0), OFFER_MAX)
        session.is_leaving = session.is_leaving or pulse.is_leaving
        session.is_void = False
    return True


def _count_returns(session: Session, report: Report, stamp: int) -> None:
    if report.succeeded is not None or report.failed or (report.full is not None and report.full.held):
        session.returns = 0
    elif report.handed_back is not None:
        session.returns += 1
        doublings = session.returns - RETURNS_FREE - 1
        if doublings >= 0:
            pause_ms = RETURN_PAUSE_MS << min(doublings, 10)
            session.paused_until = stamp + min(pause_ms, session.pulse_ms)


def acknowledge(session: Session, report: Report) -> None:
    """Results, hand-backs and the held list in a report say that those grants arrived."""
    pop = session.unacknowledged.pop
    for token in () if report.full is None else report.full.held:
        if pop(token, 0) is None:
            session.listed.add(token)
    for part in (report.succeeded, report.handed_back):
        for token in () if part is None else part.tokens:
            pop(token, None)
    for rows in (report.failed, report.snoozed, report.cancelled, report.progress):
        for row in rows:
            pop(row.token, None)


def first_shown(session: Session, report: Report) -> int | None:
    """A grant that `report` is the first to show as arrived: the first of its results, or the last of its held list."""
    if not session.unacknowledged:
        return None
    firsts = [
        part.tokens[0] for part in (report.succeeded, report.handed_back) if part is not None and part.tokens
    ]
    firsts += [rows[0].token for rows in (report.failed, report.snoozed, report.cancelled) if rows]
    if report.full is not None and report.full.held:
        firsts.append(report.full.held[-1])
    return next((token for token in firsts if token in session.unacknowledged), None)


def compare_held(session: Session, held: list[int], last_token: int, sequence: int) -> Missing:
    """A full pulse lists every token it holds; only tokens at or below its last one seen can be missing.

    The same pulse again, after a void frame, says nothing new.

    Missing in two full pulses running = gone: lost if it was ever listed, else never taken.
    """
    if sequence <= session.compared:
        return Missing([], [])
    session.compared = sequence
    listed = set(held)
    for token in held:
        if session.unacknowledged.pop(token, 0) is None:
            session.listed.add(token)
    gone: list[int] = []
    for token in session.running:
        if token > last_token or token in listed:
            session.missing.pop(token, None)
        else:
            session.missing[token] = session.missing.get(token, 0) + 1
            if session.missing[token] >= 2:
                gone.append(token)
    return Missing(
        [token for token in gone if token in session.listed],
        [token for token in gone if token not in session.listed],
    )
