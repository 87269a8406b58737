"""A worker that is nothing but records: it says what a test wants it to say, right or wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from minutebook.domain import events as facts
from minutebook.domain.records import Failed, FullPulse, HandedBack, Pulse, QueueOffer, Report, Succeeded
from minutebook.log.port import RawRecord
from minutebook.mint import mint_id
from minutebook.wire import codec, topics
from tests.crash.joblog import JobLog
from tests.crash.stack import TENANT, Stack

LEASE_MS: Final = 60_000


def grants_of(log: JobLog, execution: str) -> list[tuple[int, str]]:
    """(token, session) of every grant of an execution, in order of the log."""
    found: list[tuple[int, str]] = []
    for fact in log.facts:
        event = fact.event
        if isinstance(event, facts.ExecutionsDueGranted | facts.ExecutionsGranted):
            found += [
                (fact.token + row, event.sessions[event.session[row]])
                for row, name in enumerate(event.executions)
                if name == execution
            ]
    return found


class RawWorker:
    """One session toward every partition, named after a worker of its own."""

    def __init__(self, stack: Stack, *tasks: str, worker: str | None = None, number: int = 0) -> None:
        self.worker = worker or mint_id()
        self.session = f"{self.worker}.{number}"
        self.tasks = list(tasks)
        self.sequence = 0
        self._stack = stack

    def report(
        self,
        partition: int,
        *,
        offer: int = 0,
        last_token: int = -1,
        held: Iterable[int] | None = None,
        is_leaving: bool = False,
        timestamp: int = 0,
        **parts: Any,
    ) -> RawRecord:
        """One report. `held` None = no full pulse; `parts` are results and hand-backs."""
        self.sequence += 1
        report = Report(
            self.session,
            parts.pop("sequence", self.sequence),
            Pulse(offer, last_token, is_leaving),
            None if held is None else self._full(list(held), parts),
            **parts,
        )
        return self._stack.produce(topics.REPORTS, partition, codec.encode(report), timestamp=timestamp)

    def _full(self, held: list[int], parts: dict[str, Any]) -> FullPulse:
        return FullPulse(
            worker=self.worker,
            version="0",
            tasks=parts.pop("tasks", self.tasks),
            queues=[QueueOffer("default")],
            lease_ms=parts.pop("lease_ms", LEASE_MS),
            pulse_ms=LEASE_MS // 2,
            held=held,
        )

    def take(self, partition: int, execution: str) -> int:
        """Offer one slot, be granted `execution`, and say that it is held. Its token."""
        before = len(grants_of(self._stack.log, execution))
        self.report(partition, offer=1, held=[])
        token = self.await_grant(execution, before)
        self.report(partition, last_token=token, held=[token])
        return token

    def await_grant(self, execution: str, before: int = 0) -> int:
        """Token of the next grant of `execution` to this session."""
        self._stack.until(
            f"{execution} granted",
            lambda log: any(session == self.session for _, session in grants_of(log, execution)[before:]),
        )
        found = grants_of(self._stack.log, execution)[before:]
        return next(token for token, session in found if session == self.session)


def succeeded(execution: str, *tokens: int) -> Succeeded:
    """A result for `execution` under each of `tokens`."""
    rows = len(tokens)
    return Succeeded([TENANT], [0] * rows, [execution] * rows, list(tokens), [0] * rows, [0] * rows)


def failed(execution: str, token: int, **fields: Any) -> list[Failed]:
    """A failure."""
    base: dict[str, Any] = {"error_type": "OSError", "message": "as planned", "is_permanent": False}
    return [Failed(TENANT, execution, token, **(base | fields))]


def handed_back(executions: Sequence[str], tokens: Sequence[int]) -> HandedBack:
    """Grants given back."""
    return HandedBack([TENANT], [0] * len(tokens), list(executions), list(tokens))
