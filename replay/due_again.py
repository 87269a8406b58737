"""What came due in a frame, decided again: executions row by row, and what is on record of instants that do not run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.due import Due, due_granted_event, due_of, queued_event
from minutebook.domain.events import Event
from minutebook.domain.state import UNCHANGED
from replay.again import Again, DifferentError
from replay.differences import difference

HELD_MS: Final = 10_000
"""So long what is due may wait off the record: five seconds, and the cycle after them."""
HELD_LONG: Final = "waited in its owner's memory for long"

Came = facts.ExecutionsQueued | facts.ExecutionsDueGranted


class DueAgain:
    """What is due at the time of one frame. `owned_at`: since when its owner has been there, ms."""

    def __init__(self, again: Again, owned_at: int) -> None:
        self._again = again
        self._book = again.book
        self._owned_at = owned_at
        self._found: dict[tuple[str, str], Due] = {}
        """Executions whose row of the time index said other things, too, which are on record by now."""

    def read(self, end: int | None, *, has_commands: bool) -> None:
        """What the cycle decided first, up to the event `end`; None where the frame does not say how much that is. Commands
        may decide alike: a resume skips, an edit, too. Raises DifferentError.
        """
        again = self._again
        while (said := again.next()) is not None and (end is None or again.at < end):
            if isinstance(said, facts.ExecutionsQueued) and end is not None:
                self.came(said)
                continue
            events = self._on_record(said)
            if end is None and (not events or (has_commands and events[0] != said)):
                return
            if not events:
                raise DifferentError(self._why_not(said))
            again.same(events)
        if end is not None and again.at < end:
            self.left_out(self._book.cursor.index_low, keys.index_bound(again.now + 1))
            raise DifferentError(f"{end} events of what was due are counted, {again.at} are there")

    def came(self, said: Came) -> None:
        """Executions that came due, queued or granted: every column must be what their rows say. Raises DifferentError."""
        rows, is_long = list[Due](), False
        tenants = [said.tenants[number] for number in said.tenant]
        named = list(zip(tenants, said.executions, said.next_at, strict=True))
        for _, group in groupby(named, key=lambda row: self._source(*row)):
            found, was_held_long = self._rows(list(group))
            rows += found
            is_long = is_long or was_held_long
        if isinstance(said, facts.ExecutionsQueued):
            again: Event = queued_event(rows)
        else:
            again = due_granted_event(rows, [said.sessions[number] for number in said.session])
        if again != said:
            raise DifferentError(difference(said, again))
        if is_long:
            self._again.said(1, HELD_LONG)
        elif isinstance(said, facts.ExecutionsQueued):
            self._again.same([again])

    def _source(self, tenant: str, execution: str, next_at: int) -> bytes:
        """The row of the time index that an execution comes from. Raises DifferentError where there is none."""
        if next_at == UNCHANGED:
            row = keys.execution_row(tenant, execution)
            waiting = self._book.executions.get(row)
            if waiting is not None and waiting.indexed_at >= 0:
                return keys.index_row(waiting.indexed_at, keys.EXECUTION, row)
        else:
            row = keys.job_row(tenant, ids.job_of(execution))
            job = self._book.jobs.get(row)
            if job is not None and job.indexed_at >= 0:
                return keys.index_row(job.indexed_at, keys.JOB, row)
        raise DifferentError(f"{execution} of {tenant} has nothing that could come due")

    def _rows(self, named: list[tuple[str, str, int]]) -> tuple[list[Due], bool]:
        """What one row of the time index comes to, which the frame says is `named`; whether it was held for long."""
        if all((tenant, execution) in self._found for tenant, execution, _ in named):
            return [self._found.pop((tenant, execution)) for tenant, execution, _ in named], False
        key, now = self._source(*named[0]), self._again.now
        due_at = keys.index_parts(key)[0]
        if due_at > now:
            raise DifferentError(f"{named[0][1]} of {named[0][0]} is due {due_at - now} ms after this frame")
        first, instead = due_of(self._book, key, now)
        for at in self._moments(due_at, named[-1][2]):
            found, events = due_of(self._book, key, at)
            if not events and [(due.tenant, due.execution, due.next_at) for due in found] == named:
                return found, at < now - HELD_MS
        if not first:
            raise DifferentError(
                difference(None, instead[0]) if instead else f"{named[0][1]} is not due any more"
            )
        return first, False

    def _moments(self, due_at: int, next_at: int) -> Iterator[int]:
        """When the owner may have read a row that was due at `due_at`: now, or when it began to hold it, which was before
        the next instant came up."""
        now, first = self._again.now, max(due_at, self._owned_at)
        yield now
        yield from (at for at in (next_at - 1, max(first, now - HELD_MS), first) if first <= at < now)

    def _on_record(self, said: Event) -> list[Event]:
        """The events of the row that `said` comes from, if it is the first of them; else none."""
        for key in self._candidates(said):
            if keys.index_parts(key)[0] > self._again.now:
                continue
            found, events = due_of(self._book, key, self._again.now)
            if events and type(events[0]) is type(said) and _subject(events[0]) == _subject(said):
                self._found.update({(due.tenant, due.execution): due for due in found})
                return events
        return []

    def _candidates(self, said: Event) -> Iterator[bytes]:
        """Rows of the time index that an event may come from."""
        tenant, execution = _subject(said)
        if not tenant:
            return
        job_id = ids.job_of(execution) if ":" in execution else execution
        row = keys.job_row(tenant, job_id)
        job = self._book.jobs.get(row)
        if job is not None and job.indexed_at >= 0:
            yield keys.index_row(job.indexed_at, keys.JOB, row)
        waiting = keys.execution_row(tenant, execution)
        open_now = self._book.executions.get(waiting)
        if open_now is not None:
            if open_now.indexed_at >= 0:
                yield keys.index_row(open_now.indexed_at, keys.EXECUTION, waiting)
            yield keys.index_row(self._again.now, keys.DEADLINE, waiting)

    def _why_not(self, said: Event) -> str:
        for key in self._candidates(said):
            for event in due_of(self._book, key, self._again.now)[1]:
                return difference(said, event)
        return difference(said, None)

    def left_out(self, before: int, through: bytes) -> None:
        """Nothing that is due must be left in the time index from `before` (ms) up to the row `through`. Raises
        DifferentError. Ask once the frame is folded."""
        start = keys.index_bound(max(before, 0))
        for key, _ in list(self._book.index.walk(start, through)):
            found, events = due_of(self._book, key, self._again.now)
            for due in found:
                raise DifferentError(f"{due.execution} of {due.tenant} was due, and is left out")
            for event in events:
                raise DifferentError(difference(None, event))


def _subject(event: Event) -> tuple[str, str]:
    """(tenant, execution or job) that an event of what came due is about."""
    match event:
        case facts.ExecutionsSkipped() | facts.ExecutionsPlaced():
            return event.tenant, event.job_id
        case facts.JobsRescheduled() if not event.work and event.job_ids:
            return event.tenants[event.tenant[0]], event.job_ids[0]
        case facts.ExecutionExpired() | facts.ExecutionDead() | facts.ExecutionCancelled():
            return event.tenant, event.execution
        case _:
            return "", ""
