"""What is counted of frames that are in the log: one table from events to metrics, columns as wholes.

A frame of a burst has one event with thousands of rows of few queues and tasks, so a row costs an entry in a dictionary,
and the rest is done for each distinct value.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Final

from minutebook.collectors import OTHER
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.events import Event
from minutebook.domain.outputs import Output, ToSession
from minutebook.domain.records import Granted
from streams import metrics

Place = tuple[str, str]
"""Queue and task."""
Decided = Mapping[tuple[str, str, int], int]
"""(command, outcome, the broker's stamp of its record) -> how many."""
_UNKNOWN: Final[Place] = (OTHER, OTHER)


class Counting:
    """Counts for one partition. Remembers the queue and task of what runs, by token, as events of ends do not name them."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._running: dict[int, Place] = {}
        self._has_queued = False
        """Whether the last frame grants what was queued."""
        for key, execution in book.running.scan(b""):
            self._running[execution.token] = self._place(key, execution.version)

    def frame(self, placed: Iterable[tuple[Event, int]], now: int, decided: Decided) -> None:
        """A frame of ours that is valid, decided at `now` and committed; `placed` as in `Draft`."""
        count = 0
        for event, token in placed:
            count += 1
            step = _COUNTED.get(type(event))
            if step is not None:
                step(self, event, token, now)
        metrics.FRAME_EVENTS.observe(count)
        for (command, outcome, stamp), many in decided.items():
            metrics.COMMANDS.add((command, outcome), many)
            metrics.DECISION.observe(max(now - stamp, 0) / 1_000, (command,), many)
            if outcome == "repeated":
                metrics.DUPLICATES.add(("command",), many)

    def acknowledged(self, samples: list[tuple[int, int]]) -> None:
        """Grants that reports showed to have arrived: (token, ms since the broker had them). Empties the list."""
        for token, ms in samples:
            metrics.GRANT_ACK.observe(max(ms, 0) / 1_000, self._running.get(token, _UNKNOWN)[:1])
        samples.clear()

    # -- what comes due and starts

    def _come(self, event: Any, token: int, now: int) -> None:
        for queue, due_at in _by_queue(event):
            metrics.DUE.add((queue,), len(due_at))
            late = {now - at: count for at, count in Tally(due_at).items()}
            metrics.LATENESS.observe_ms(late, (queue,))

    def _due_granted(self, event: facts.ExecutionsDueGranted, token: int, now: int) -> None:
        self._come(event, token, now)
        for queue, due_at in _by_queue(event):
            metrics.GRANTS.add((queue,), len(due_at))
            metrics.GRANT_WAIT.observe(0, (queue,), len(due_at))
        self._running.update(zip(range(token, token + len(event.executions)), _places(event), strict=False))

    def _granted(self, event: facts.ExecutionsGranted, token: int, now: int) -> None:
        """The event names neither queue nor task; its outputs do."""
        self._has_queued = True

    def outputs(self, found: Iterable[Output], now: int) -> None:
        """Outputs of the frame that was counted last: what in them was queued before it was granted, at `now`."""
        if not self._has_queued:
            return
        self._has_queued = False
        for output in found:
            if isinstance(output, ToSession) and output.record.granted is not None:
                self._granted_to(output, output.record.granted, now)

    def _granted_to(self, output: ToSession, granted: Granted, now: int) -> None:
        running, base = self._running, output.record.frame << 16
        waited: list[Tally[int]] = [Tally() for _ in granted.queues]
        for row, ready_at, queue, place in zip(
            granted.rows, output.ready_at, granted.queue, _places(granted), strict=False
        ):
            if base + row not in running:
                running[base + row] = place
                waited[queue][now - ready_at] += 1
        for name, tally in zip(granted.queues, waited, strict=True):
            metrics.GRANTS.add((name,), tally.total())
            metrics.GRANT_WAIT.observe_ms(tally, (name,))

    def _place(self, key: bytes, version: int) -> Place:
        spec = self._book.specs.get(keys.spec_row(key[: key.rindex(b":")], version))
        return _UNKNOWN if spec is None else (spec.queue, spec.task)

    # -- what ends

    def _take(self, tokens: Iterable[int]) -> Iterator[Place]:
        return map(self._running.pop, tokens, repeat(_UNKNOWN))

    def _finished(self, tokens: Iterable[int], status: str) -> Tally[Place]:
        places = Tally(self._take(tokens))
        for place, count in places.items():
            metrics.FINISHED.add((*place, status), count)
        return places

    def _succeeded(self, event: facts.AttemptsSucceeded, token: int, now: int) -> None:
        runs: dict[Place, Tally[int]] = defaultdict(Tally)
        for (place, ms), count in Tally(zip(self._take(event.tokens), event.run_ms, strict=True)).items():
            runs[place][ms] = count
        for place, tally in runs.items():
            metrics.FINISHED.add((*place, "succeeded"), tally.total())
            metrics.RUN.observe_ms(tally, (*place, "succeeded"))

    def _ended(self, event: facts.AttemptFailed | facts.AttemptSnoozed, token: int, now: int) -> None:
        status = "failed" if isinstance(event, facts.AttemptFailed) else "snoozed"
        for place in self._finished([event.token], status):
            metrics.RUN.observe_ms({event.run_ms: 1}, (*place, status))
        if event.retry_at >= 0:
            metrics.RETRIES.add((status,))

    def _lost(self, event: facts.AttemptsLost, token: int, now: int) -> None:
        for (queue, _), count in self._finished(event.tokens, "lost").items():
            if event.cause == "lease_over":
                metrics.LEASES_EXPIRED.add((queue,), count)
        metrics.RETRIES.add(("lost",), sum(event.has_retry))

    def _cancelled(self, event: facts.AttemptCancelled, token: int, now: int) -> None:
        self._finished([event.token], "cancelled")

    def _returned(self, event: facts.GrantsReturned, token: int, now: int) -> None:
        for (queue, _), count in Tally(self._take(event.tokens)).items():
            metrics.RETURNED.add((queue, event.reason), count)


def _by_queue(event: Any) -> Iterable[tuple[str, Sequence[int]]]:
    """Queues of an event of what came due, with the due instants of each."""
    if len(event.queues) == 1:
        return [(event.queues[0], event.due_at)]
    found: dict[int, list[int]] = defaultdict(list)
    for number, due_at in zip(event.queue, event.due_at, strict=True):
        found[number].append(due_at)
    return [(event.queues[number], due_at) for number, due_at in found.items()]


def _places(event: Any) -> Iterable[Place]:
    """Queue and task of each row, the same object for the same ones."""
    queues, tasks = event.queues, event.tasks
    if len(queues) == 1 and len(tasks) == 1:
        return repeat((queues[0], tasks[0]))
    columns = list(zip(event.queue, event.task, strict=True))
    known = {numbers: (queues[numbers[0]], tasks[numbers[1]]) for numbers in set(columns)}
    return map(known.__getitem__, columns)


_Step = Callable[[Counting, Any, int, int], None]
"""Counting, event, token of its first row, the frame's time."""


def _one(counter: Any, labels: Callable[[Any], tuple[str, ...]]) -> _Step:
    """An event that is one more under `labels`."""
    return lambda counting, event, token, now: counter.add(labels(event))


_COUNTED: Final[dict[type, _Step]] = {
    facts.ExecutionsDueGranted: Counting._due_granted,
    facts.ExecutionsQueued: Counting._come,
    facts.ExecutionsGranted: Counting._granted,
    facts.AttemptsSucceeded: Counting._succeeded,
    facts.AttemptFailed: Counting._ended,
    facts.AttemptSnoozed: Counting._ended,
    facts.AttemptsLost: Counting._lost,
    facts.AttemptCancelled: Counting._cancelled,
    facts.GrantsReturned: Counting._returned,
    facts.JobSubmitted: _one(metrics.SUBMITTED, lambda event: (event.queue, event.task)),
    facts.ExecutionsSkipped: lambda counting, event, token, now: metrics.SKIPPED.add(
        (event.reason,), event.count
    ),
    facts.ExecutionExpired: _one(metrics.SKIPPED, lambda event: (event.reason,)),
    facts.ExecutionRedriven: _one(metrics.RETRIES, lambda event: ("redriven",)),
    facts.ExecutionDead: _one(metrics.DEAD, lambda event: (event.cause,)),
    facts.AlertRaised: _one(metrics.ALERTS, lambda event: (event.kind,)),
    facts.ReportRefused: _one(metrics.STALE, lambda event: (event.kind,)),
    facts.RecordRejected: _one(metrics.REFUSED, lambda event: ("rejected",)),
    facts.InputRefused: _one(metrics.REFUSED, lambda event: ("internal_error",)),
}
