"""Attempts that an owner ends or takes from workers, decided again: lost, handed back, withdrawn, past their time.

What follows from that is for the policies of their jobs, and must come out equal. That it happened rests on the owner's
memory: it is held against the reports that were read, and never counts as more than allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.events import Event
from minutebook.domain.giving_up import Held
from minutebook.domain.placing import spec_of
from minutebook.domain.results import died, lost, overrun, returned
from minutebook.domain.retries import deadline_at
from minutebook.domain.rules import TIMEOUT_GRACE_MS
from replay.again import MEMORY, OFFERS, Again, DifferentError
from replay.hearing import Hearing

LEASE_OVER: Final = "lease_over"
NOT_HELD: Final = "not_held"
HANDED_BACK: Final = "handed_back"
WITHDRAWN: Final = "withdrawn"
DIED: Final = "session_died"
WAITS: Final = ("queued", "scheduled")

Taken = facts.AttemptsLost | facts.GrantsReturned


class TakenAgain:
    """Those of one frame."""

    def __init__(self, again: Again, hearing: Hearing) -> None:
        self._again = again
        self._book = again.book
        self._hearing = hearing

    def by_report(self, said: Taken) -> None:
        """What the pulse of a report brings about. Raises DifferentError."""
        self._again.may(self._follow(said, self._held(said)))

    def by_owner(self, said: Taken) -> None:
        """What time brings about, behind the inputs: a lease is over, a grant was not acknowledged. Raises DifferentError."""
        again, how = self._again, _how(said)
        if how == DIED and isinstance(said, facts.AttemptsLost):
            again.may(died(self._book, self._waiting(said), again.now))
            return
        held = self._held(said)
        if how == LEASE_OVER:
            faults = [self._hearing.fault_of_lease(name) for name in {one.execution.session for one in held}]
        elif how == WITHDRAWN:
            faults = [self._hearing.fault_of_withdrawal(one.token, one.execution) for one in held]
        else:
            raise DifferentError(
                f"{type(said).__name__} as {how} follows from no report that is decided here"
            )
        if fault := next(filter(None, faults), ""):
            raise DifferentError(fault)
        again.may(self._follow(said, held), OFFERS if None in faults else "")

    def _follow(self, said: Taken, held: list[Held]) -> list[Event]:
        now = self._again.now
        if isinstance(said, facts.AttemptsLost):
            return lost(self._book, said.cause, held, now)
        return returned(self._book, said.reason, held, now)

    def _held(self, said: Taken) -> list[Held]:
        """Their attempts, and those that were asked to stop and end as cancelled right behind."""
        rows = list(
            zip(map(said.tenants.__getitem__, said.tenant), said.executions, said.tokens, strict=True)
        )
        for event in self._left(1):
            if not isinstance(event, facts.AttemptCancelled) or event.cause != _how(said):
                break
            rows.append((event.tenant, event.execution, event.token))
        return [self._running(*row) for row in rows]

    def _left(self, skipped: int) -> Sequence[Event]:
        return self._again.frame.events[self._again.at + skipped :]

    def _running(self, tenant: str, execution: str, token: int) -> Held:
        key = keys.execution_row(tenant, execution)
        found = self._book.running.get(key)
        if found is None or found.token != token:
            raise DifferentError(f"{execution} of {tenant} does not run under the token {token}")
        return Held(key, token, found)

    def _waiting(self, said: facts.AttemptsLost) -> Held:
        """One that was withdrawn from a session which then died."""
        key = keys.execution_row(said.tenants[said.tenant[0]], said.executions[0])
        found = self._book.executions.get(key)
        if found is None or found.status not in WAITS:
            raise DifferentError(f"{said.executions[0]} counts as lost, but does not wait")
        return Held(key, found.token, found)

    # -- past their time

    def overrun(self, said: facts.AttemptFailed | facts.AttemptCancelled | facts.AttemptStuck) -> None:
        """An attempt that its owner ends, long past its time, or finds to be stuck. Raises DifferentError."""
        again, held = self._again, self._running(said.tenant, said.execution, said.token)
        if isinstance(said, facts.AttemptFailed):
            self._check_overrun(said, held)
            unchecked = OFFERS if self._hearing.stamp < 0 else ""
            again.may(overrun(self._book, held, said.error_type, said.message, again.now), unchecked)
        elif isinstance(said, facts.AttemptCancelled) and not held.execution.is_stopping:
            raise DifferentError(f"{said.execution} was not asked to stop")
        else:
            if isinstance(said, facts.AttemptStuck):
                self._check_stuck(said, held)
            again.said(1, MEMORY)

    def _check_overrun(self, said: facts.AttemptFailed, held: Held) -> None:
        if said.error_type == "Stuck":
            before = self._again.frame.events[: self._again.at]
            stuck = next((one for one in reversed(before) if not isinstance(one, facts.AlertRaised)), None)
            if not isinstance(stuck, facts.AttemptStuck) or stuck.token != said.token:
                raise DifferentError(f"{said.execution} is ended as stuck, and was not found to be")
        elif said.error_type == "Timeout":
            self._check_time(said.execution, self._end_at(held), "its owner may end it")
        else:
            raise DifferentError(f"{said.execution} fails as {said.error_type}, which no report says")

    def _end_at(self, held: Held) -> int:
        """When an owner may end an attempt, ms."""
        spec = spec_of(self._book, held.key, held.execution.version)
        until, end = held.execution.started_at + spec.timeout_ms, deadline_at(spec.policy, held.execution)
        return (until if end is None else min(until, end)) + TIMEOUT_GRACE_MS

    def _check_stuck(self, said: facts.AttemptStuck, held: Held) -> None:
        after_ms = spec_of(self._book, held.key, held.execution.version).policy.stuck_after_ms
        if after_ms is None:
            raise DifferentError(f"{said.execution} is found to be stuck, and need not show progress")
        self._check_time(said.execution, said.since_at + after_ms, "it may count as stuck")

    def _check_time(self, execution: str, at: int, what: str) -> None:
        """An owner acts on time only once it has read a later stamp; nothing is known where no report was read."""
        if 0 <= self._hearing.stamp <= at:
            left_ms = at - self._hearing.stamp
            raise DifferentError(f"{execution}: {what} {left_ms} ms later, by all that was read")


def _how(said: Taken) -> str:
    return said.cause if isinstance(said, facts.AttemptsLost) else said.reason
